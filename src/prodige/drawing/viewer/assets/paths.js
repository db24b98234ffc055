/** Shortest paths over the weights of the graph: Dijkstra's algorithm with a binary heap. */

/** Shortest paths from one vertex to all others. */
class Paths {
  /**
   * @param {GraphData} graph
   * @param {number} source
   */
  constructor(graph, source) {
    this.source = source;
    this.distances = new Float64Array(graph.nVertices).fill(Infinity);
    this.parents = new Int32Array(graph.nVertices).fill(-1);
    this.search(graph);
  }

  /** @param {GraphData} graph */
  search(graph) {
    const { arcStarts, arcEnds, arcWeights } = graph;
    const { distances, parents } = this;
    const settled = new Uint8Array(graph.nVertices);
    const queue = new Queue();
    distances[this.source] = 0;
    queue.push(0, this.source);
    while (queue.size > 0) {
      const vertex = queue.pop();
      if (settled[vertex]) continue; // an older, longer entry
      settled[vertex] = 1;
      for (let arc = arcStarts[vertex]; arc < arcStarts[vertex + 1]; arc += 1) {
        const end = arcEnds[arc];
        const distance = distances[vertex] + arcWeights[arc];
        if (distance < distances[end]) {
          distances[end] = distance;
          parents[end] = vertex;
          queue.push(distance, end);
        }
      }
    }
  }

  /** @param {number} target @returns {number[]} from the source to the target; empty if there is no path */
  to(target) {
    if (!Number.isFinite(this.distances[target])) return [];
    const path = [];
    for (let vertex = target; vertex >= 0; vertex = this.parents[vertex]) path.push(vertex);
    return path.reverse();
  }
}

/** A binary heap of vertices, smallest key first. */
class Queue {
  constructor() {
    this.keys = [];
    this.vertices = [];
  }

  get size() {
    return this.keys.length;
  }

  /** @param {number} key @param {number} vertex */
  push(key, vertex) {
    const { keys, vertices } = this;
    let at = keys.length;
    keys.push(key);
    vertices.push(vertex);
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (keys[above] <= key) break;
      keys[at] = keys[above];
      vertices[at] = vertices[above];
      at = above;
    }
    keys[at] = key;
    vertices[at] = vertex;
  }

  /** @returns {number} the vertex with the smallest key */
  pop() {
    const { keys, vertices } = this;
    const first = vertices[0];
    const key = keys.pop();
    const vertex = vertices.pop();
    const size = keys.length;
    if (size === 0) return first;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      if (below >= size) break;
      if (below + 1 < size && keys[below + 1] < keys[below]) below += 1;
      if (keys[below] >= key) break;
      keys[at] = keys[below];
      vertices[at] = vertices[below];
      at = below;
    }
    keys[at] = key;
    vertices[at] = vertex;
    return first;
  }
}
