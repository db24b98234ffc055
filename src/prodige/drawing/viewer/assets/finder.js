/** Which vertex is at a place: vertices are sorted into the squares of a grid. */
class Finder {
  /**
   * @param {Float32Array} positions
   * @param {Camera} camera knows how far the picture reaches
   */
  constructor(positions, camera) {
    const n = positions.length / 2;
    this.positions = positions;
    this.cell = 2 * camera.spacing;
    this.left = camera.middle.x - camera.extent.x / 2;
    this.bottom = camera.middle.y - camera.extent.y / 2;
    this.columns = Math.max(1, Math.ceil(camera.extent.x / this.cell));
    this.rows = Math.max(1, Math.ceil(camera.extent.y / this.cell));
    const where = new Int32Array(n);
    this.starts = new Int32Array(this.columns * this.rows + 1);
    for (let v = 0; v < n; v += 1) {
      where[v] = this.row(positions[2 * v + 1]) * this.columns + this.column(positions[2 * v]);
      this.starts[where[v] + 1] += 1;
    }
    for (let at = 0; at < this.columns * this.rows; at += 1) this.starts[at + 1] += this.starts[at];
    const next = this.starts.slice();
    this.vertices = new Int32Array(n);
    for (let v = 0; v < n; v += 1) {
      this.vertices[next[where[v]]] = v;
      next[where[v]] += 1;
    }
    /** How far a vertex usually is from the next one: less than the spacing where vertices form crowds. */
    this.gap = Math.max(this.typicalGap(n), camera.spacing / 8);
  }

  /** The median over some vertices. @param {number} n */
  typicalGap(n) {
    const gaps = [];
    for (let vertex = 0; vertex < n; vertex += Math.ceil(n / 200)) {
      const [x, y] = [this.positions[2 * vertex], this.positions[2 * vertex + 1]];
      const next = this.nearest(x, y, 2 * this.cell, (other) => other !== vertex);
      gaps.push(next < 0 ? 2 * this.cell : Math.hypot(this.positions[2 * next] - x, this.positions[2 * next + 1] - y));
    }
    return gaps.sort((a, b) => a - b)[gaps.length >> 1];
  }

  column(x) {
    return Math.min(Math.max(Math.floor((x - this.left) / this.cell), 0), this.columns - 1);
  }

  row(y) {
    return Math.min(Math.max(Math.floor((y - this.bottom) / this.cell), 0), this.rows - 1);
  }

  /**
   * Call with every vertex in squares that a rectangle touches: those in the rectangle and a few around it.
   * @param {number} left
   * @param {number} bottom
   * @param {number} right
   * @param {number} top
   * @param {(vertex: number) => void} visit
   */
  within(left, bottom, right, top, visit) {
    const [first, last] = [this.column(left), this.column(right)];
    for (let row = this.row(bottom); row <= this.row(top); row += 1) {
      const base = row * this.columns;
      for (let at = this.starts[base + first]; at < this.starts[base + last + 1]; at += 1) visit(this.vertices[at]);
    }
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} radius in units of the plane
   * @param {(vertex: number) => boolean} allowed
   * @returns {number} the nearest vertex, -1 if none is that near
   */
  nearest(x, y, radius, allowed) {
    let [found, best] = [-1, radius * radius];
    this.within(x - radius, y - radius, x + radius, y + radius, (vertex) => {
      const [dx, dy] = [this.positions[2 * vertex] - x, this.positions[2 * vertex + 1] - y];
      const square = dx * dx + dy * dy;
      if (square <= best && allowed(vertex)) [found, best] = [vertex, square];
    });
    return found;
  }
}
