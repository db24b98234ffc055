/**
 * How edges look. Few are drawn as lines, thicker where they are shorter. Many are added up: each pixel counts the lines
 * through it, and the count becomes a shade, so that a thousand edges on one place stay as calm as ten.
 */

/** Edges that are still drawn one by one. */
const MOST_LINES = 4000;

/** The darkest shade of added edges; vertices must stand out. */
const DARKEST = 0.5;

/** What is drawn between two looks at the clock. */
const EDGES_AT_ONCE = 1500;
const ROWS_AT_ONCE = 64;

/** Draws edges into a picture, in pieces, so that the page stays awake. */
class EdgePainter {
  /** @param {GraphData} graph */
  constructor(graph) {
    this.graph = graph;
    /** Per edge, 0 for the longest to 1 for the shortest, by rank: weights may be of any scale. */
    this.nearness = new Float32Array(graph.nEdges);
    const order = Uint32Array.from(this.nearness.keys()).sort((a, b) => graph.weights[a] - graph.weights[b]);
    order.forEach((edge, rank) => { this.nearness[edge] = 1 - rank / Math.max(graph.nEdges - 1, 1); });
    this.counts = new Float32Array(0);
  }

  /**
   * Draw all edges that are seen; a generator that pauses between pieces.
   * @param {CanvasRenderingContext2D} context in device pixels
   * @param {{width: number, height: number, left: number, top: number, scale: number, ratio: number}} frame
   *     `left` and `top` are the place in the plane of the first pixel, `scale` is in device pixels
   * @param {(vertex: number) => boolean} shown
   * @param {string} color
   */
  * paint(context, frame, shown, color) {
    const { graph } = this;
    const { positions, tails, ends, nEdges } = graph;
    const seen = new Float32Array(4 * nEdges); // ends, in device pixels
    const ids = new Int32Array(nEdges);
    let count = 0;
    for (let edge = 0; edge < nEdges; edge += 1) {
      const [i, j] = [tails[edge], ends[edge]];
      if (!shown(i) || !shown(j)) continue;
      const x0 = (positions[2 * i] - frame.left) * frame.scale;
      const y0 = (frame.top - positions[2 * i + 1]) * frame.scale;
      const x1 = (positions[2 * j] - frame.left) * frame.scale;
      const y1 = (frame.top - positions[2 * j + 1]) * frame.scale;
      if (clip(x0, y0, x1, y1, frame.width - 2, frame.height - 2, seen, 4 * count)) {
        ids[count] = edge;
        count += 1;
      }
      if (edge % (4 * EDGES_AT_ONCE) === 0) yield;
    }
    if (count <= MOST_LINES) yield* this.paintLines(context, frame, seen, ids, count, color);
    else yield* this.paintCounts(context, frame, seen, ids, count, color);
  }

  /** One line each, in four widths. */
  * paintLines(context, frame, seen, ids, count, color) {
    const strength = Math.min(1, 1.4 / (1 + count / 1500));
    context.strokeStyle = color;
    context.lineCap = "round";
    for (let width = 0; width < 4; width += 1) {
      context.lineWidth = (0.6 + 0.5 * width) * frame.ratio;
      context.globalAlpha = strength * (0.22 + 0.14 * width);
      for (let from = 0; from < count; from += EDGES_AT_ONCE) {
        context.beginPath();
        for (let at = from; at < Math.min(count, from + EDGES_AT_ONCE); at += 1) {
          if (Math.min(3, Math.floor(4 * this.nearness[ids[at]])) !== width) continue;
          context.moveTo(seen[4 * at], seen[4 * at + 1]);
          context.lineTo(seen[4 * at + 2], seen[4 * at + 3]);
        }
        context.stroke();
        yield;
      }
    }
    context.globalAlpha = 1;
  }

  /** Count lines per pixel, then shade. */
  * paintCounts(context, frame, seen, ids, count, color) {
    const { width, height } = frame;
    if (this.counts.length < width * height) this.counts = new Float32Array(width * height);
    const counts = this.counts.fill(0, 0, width * height);
    for (let at = 0; at < count; at += 1) {
      const strength = 0.4 + 0.6 * this.nearness[ids[at]];
      addLine(counts, width, seen[4 * at], seen[4 * at + 1], seen[4 * at + 2], seen[4 * at + 3], strength);
      if (at % EDGES_AT_ONCE === EDGES_AT_ONCE - 1) yield;
    }
    const gain = Math.min(0.5, Math.max(0.02, 16 / Math.sqrt(count)));
    const [red, green, blue] = channels(color);
    const ink = (blue << 16) | (green << 8) | red; // little-endian, as are all machines with a browser
    for (let from = 0; from < height; from += ROWS_AT_ONCE) {
      const rows = Math.min(ROWS_AT_ONCE, height - from);
      const strip = new ImageData(width, rows);
      const pixels = new Uint32Array(strip.data.buffer);
      for (let at = 0; at < pixels.length; at += 1) {
        const lines = counts[from * width + at];
        if (lines > 0) pixels[at] = ink | ((255 * DARKEST * (1 - Math.exp(-gain * lines))) << 24);
      }
      context.putImageData(strip, 0, from);
      yield;
    }
  }
}

/**
 * Cut a line to a rectangle from (0, 0) (Liang and Barsky) and write its ends to `out`.
 * @returns {boolean} whether any of it is inside
 */
function clip(x0, y0, x1, y1, width, height, out, at) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  let [from, to] = [0, 1];
  if ((dx === 0 && (x0 < 0 || x0 > width)) || (dy === 0 && (y0 < 0 || y0 > height))) return false;
  if (dx !== 0) {
    from = Math.max(from, Math.min(-x0 / dx, (width - x0) / dx));
    to = Math.min(to, Math.max(-x0 / dx, (width - x0) / dx));
  }
  if (dy !== 0) {
    from = Math.max(from, Math.min(-y0 / dy, (height - y0) / dy));
    to = Math.min(to, Math.max(-y0 / dy, (height - y0) / dy));
  }
  if (from > to) return false;
  out[at] = x0 + from * dx;
  out[at + 1] = y0 + from * dy;
  out[at + 2] = x0 + to * dx;
  out[at + 3] = y0 + to * dy;
  return true;
}

/**
 * Add a smooth line to an array of pixels: each step along the longer side is shared between two pixels across it (Wu).
 * @param {Float32Array} counts
 * @param {number} width of a row of pixels
 * @param {number} strength what a line adds
 */
function addLine(counts, width, x0, y0, x1, y1, strength) {
  const steep = Math.abs(y1 - y0) > Math.abs(x1 - x0);
  let [a0, b0, a1, b1] = steep ? [y0, x0, y1, x1] : [x0, y0, x1, y1];
  if (a0 > a1) [a0, b0, a1, b1] = [a1, b1, a0, b0];
  const slope = a1 > a0 ? (b1 - b0) / (a1 - a0) : 0;
  const along = (steep ? width : 1) | 0;
  const across = (steep ? 1 : width) | 0;
  const first = Math.ceil(a0) | 0;
  const last = Math.floor(a1) | 0;
  let b = b0 + (first - a0) * slope;
  let row = Math.imul(first, along);
  for (let a = first; a <= last; a = (a + 1) | 0) { // integers throughout: this is where the time goes
    const low = b | 0;
    const part = (b - low) * strength;
    const at = (row + Math.imul(low, across)) | 0;
    counts[at] += strength - part;
    counts[at + across] += part;
    b += slope;
    row = (row + along) | 0;
  }
}

/** @param {string} color as #rrggbb @returns {number[]} red, green and blue */
function channels(color) {
  const number = parseInt(color.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}
