/**
 * What the page shows: the graph, its labels, groups and images, read from the JSON in the page.
 *
 * Labels are never markup: whoever shows one sets textContent or draws it on a canvas.
 */

/**
 * Decode base64 into an array of little-endian numbers.
 * @template T
 * @param {string} text
 * @param {{new (buffer: ArrayBuffer): T}} type
 * @returns {T}
 */
function decode(text, type) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return new type(bytes.buffer);
}

/** The graph and what is known of its vertices. Vertices from `nItems` on are hubs. */
class GraphData {
  /** @param {object} data what viewer/page.py wrote */
  constructor(data) {
    this.title = data.title;
    this.words = data.words;
    this.nItems = data.n_items;
    this.nVertices = data.n_vertices;
    this.labels = data.labels;
    /** Edges by their smaller end: those of i are from starts[i] to starts[i + 1]. */
    this.starts = decode(data.starts, Int32Array);
    this.ends = decode(data.ends, Int32Array);
    this.weights = decode(data.weights, Float32Array);
    this.nEdges = this.ends.length;
    /** x and y of every vertex; y points up. */
    this.positions = decode(data.positions, Float32Array);
    this.groupNames = data.groups ? data.groups.names : [];
    this.groupOf = data.groups ? decode(data.groups.codes, Uint16Array) : new Uint16Array(0);
    this.images = data.images;
    this.buildArcs();
  }

  /** Lay out both directions of every edge by the vertex they leave. */
  buildArcs() {
    const { nVertices, nEdges, starts, ends, weights } = this;
    /** The smaller end of each edge. */
    this.tails = new Int32Array(nEdges);
    const counts = new Int32Array(nVertices + 1);
    for (let i = 0; i < nVertices; i += 1) {
      for (let e = starts[i]; e < starts[i + 1]; e += 1) {
        this.tails[e] = i;
        counts[i + 1] += 1;
        counts[ends[e] + 1] += 1;
      }
    }
    for (let v = 0; v < nVertices; v += 1) counts[v + 1] += counts[v];
    this.arcStarts = counts;
    this.arcEnds = new Int32Array(2 * nEdges);
    this.arcWeights = new Float32Array(2 * nEdges);
    const next = counts.slice();
    for (let e = 0; e < nEdges; e += 1) {
      for (const [from, to] of [[this.tails[e], ends[e]], [ends[e], this.tails[e]]]) {
        this.arcEnds[next[from]] = to;
        this.arcWeights[next[from]] = weights[e];
        next[from] += 1;
      }
    }
  }

  /** @param {number} vertex */
  isHub(vertex) {
    return vertex >= this.nItems;
  }

  /** @param {number} vertex */
  degree(vertex) {
    return this.arcStarts[vertex + 1] - this.arcStarts[vertex];
  }

  /** Whether the vertex has a label of its own. @param {number} vertex */
  isLabelled(vertex) {
    return this.labels !== null && vertex < this.labels.length;
  }

  /** @param {number} vertex @returns {string} the whole label */
  label(vertex) {
    if (this.isLabelled(vertex)) return this.labels[vertex];
    return this.isHub(vertex) ? `hub ${vertex - this.nItems}` : `item ${vertex}`;
  }

  /** @param {number} vertex @returns {number} its group, -1 if it has none */
  group(vertex) {
    return vertex < this.groupOf.length ? this.groupOf[vertex] : -1;
  }

  /** @param {number} vertex @returns {?{sheet: number, x: number, y: number}} where its image is */
  image(vertex) {
    const { images } = this;
    if (!images || vertex >= images.n_images) return null;
    const perSheet = images.columns * images.rows;
    const within = vertex % perSheet;
    return {
      sheet: Math.floor(vertex / perSheet),
      x: (within % images.columns) * images.width,
      y: Math.floor(within / images.columns) * images.height,
    };
  }
}

/**
 * Shorten text without cutting a character in two.
 * @param {string} text
 * @param {number} most letters
 */
function shorten(text, most) {
  if (text.length <= most) return text;
  const letters = Array.from(text.slice(0, 2 * most + 2));
  return letters.length <= most ? letters.join("") : `${letters.slice(0, most - 1).join("")}…`;
}

/** @param {number} length @returns {string} six digits, "no path" for infinity */
function showLength(length) {
  return Number.isFinite(length) ? String(Number(length.toPrecision(6))) : "no path";
}
