/** What moves on top of the picture: what is chosen, the path, the vertex under the pointer, names. */

/** Edges of a chosen vertex that are lit up. */
const MOST_SPOKES = 600;

/** Names that are written beside vertices at once; more would cover each other. */
const MOST_NAMES = 60;

/** Draws on top of the scene. */
class Overlay {
  /**
   * @param {GraphData} graph
   * @param {Marks} marks
   * @param {Finder} finder
   */
  constructor(graph, marks, finder) {
    this.graph = graph;
    this.marks = marks;
    this.finder = finder;
  }

  /**
   * @param {CanvasRenderingContext2D} context in device pixels
   * @param {Camera} camera
   * @param {number} ratio
   * @param {{from: number, to: number, path: number[], hovered: number, cross: boolean}} state
   * @param {Scene} scene what is below
   */
  draw(context, camera, ratio, state, scene) {
    context.save();
    context.scale(ratio, ratio);
    this.context = context;
    this.camera = camera;
    this.ratio = ratio;
    this.thumbnail = scene.thumbnail;
    const { shown } = scene;
    if (state.from >= 0 && state.to < 0) this.drawSpokes(state.from, shown);
    if (state.path.length > 1) this.drawPath(state.path);
    const chosen = [state.from, state.to].filter((vertex) => vertex >= 0);
    chosen.forEach((vertex) => this.drawRing(vertex, 3));
    const named = new Set([...chosen, ...state.path]); // in this order: the first to come has the room
    if (state.hovered >= 0) this.drawRing(state.hovered, 1.5);
    if (state.path.length === 0) this.collectNames(named, shown);
    this.drawNames(named);
    if (state.cross) this.drawCross();
    context.restore();
  }

  /** @param {number} vertex */
  at(vertex) {
    return this.camera.toScreen(this.graph.positions[2 * vertex], this.graph.positions[2 * vertex + 1]);
  }

  /** The edges of a chosen vertex. */
  drawSpokes(vertex, shown) {
    const { context, graph } = this;
    const from = this.at(vertex);
    const first = graph.arcStarts[vertex];
    context.beginPath();
    for (let arc = first; arc < Math.min(graph.arcStarts[vertex + 1], first + MOST_SPOKES); arc += 1) {
      if (!shown(graph.arcEnds[arc])) continue;
      const to = this.at(graph.arcEnds[arc]);
      context.moveTo(from.x, from.y);
      context.lineTo(to.x, to.y);
    }
    context.strokeStyle = this.marks.theme.accent;
    context.globalAlpha = 0.45;
    context.lineWidth = 1;
    context.stroke();
    context.globalAlpha = 1;
  }

  /** @param {number[]} path */
  drawPath(path) {
    const { context, marks } = this;
    context.lineJoin = "round";
    context.lineCap = "round";
    for (const [width, color] of [[7, marks.theme.paper], [3, marks.theme.accent]]) {
      context.beginPath();
      for (const vertex of path) {
        const { x, y } = this.at(vertex);
        context.lineTo(x, y);
      }
      context.lineWidth = width;
      context.strokeStyle = color;
      context.stroke();
    }
    for (const vertex of path) this.drawVertex(vertex);
  }

  /** @param {number} vertex */
  drawVertex(vertex) {
    const { context, marks, camera, ratio, thumbnail } = this;
    const { x, y } = this.at(vertex);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (!(thumbnail > 0 && marks.drawImage(context, vertex, x * ratio, y * ratio, thumbnail, ratio))) {
      marks.draw(context, [vertex], [x * ratio, y * ratio], Math.max(marks.radius(camera), 4) * ratio);
    }
    context.restore();
  }

  /** @param {number} vertex @param {number} width */
  drawRing(vertex, width) {
    const { context, marks, camera } = this;
    const { x, y } = this.at(vertex);
    const thumbnail = this.graph.image(vertex) ? this.thumbnail / 1.6 : 0;
    context.beginPath();
    context.arc(x, y, Math.max(marks.radius(camera) + 4, thumbnail, 6), 0, 2 * Math.PI);
    context.lineWidth = width + 2;
    context.strokeStyle = marks.theme.paper;
    context.stroke();
    context.lineWidth = width;
    context.strokeStyle = width > 2 ? marks.theme.accent : marks.theme.ink;
    context.stroke();
  }

  /** Add the vertices in sight if they are few. */
  collectNames(named, shown) {
    const { camera } = this;
    if (camera.scale * camera.spacing < 36) return;
    const [low, high] = [camera.toPlane(0, camera.height), camera.toPlane(camera.width, 0)];
    const seen = [];
    const plain = !this.graph.labels && !this.graph.images; // then numbers are the only names there are
    this.finder.within(low.x, low.y, high.x, high.y, (vertex) => {
      const drawn = this.thumbnail > 0 && this.graph.image(vertex); // an image needs no name as well
      if (shown(vertex) && !drawn && (plain || this.graph.isLabelled(vertex))) seen.push(vertex);
    });
    seen.slice(0, MOST_NAMES).forEach((vertex) => named.add(vertex));
  }

  /** @param {Set<number>} vertices */
  drawNames(vertices) {
    const { context, marks, camera, graph } = this;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.direction = "ltr"; // the name begins beside its vertex, whatever direction its letters run in
    context.textAlign = "left";
    const taken = [];
    for (const vertex of vertices) {
      const { x, y } = this.at(vertex);
      if (x < -200 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
      const name = isolated(shorten(graph.label(vertex).replace(/\s+/g, " "), 28));
      const beside = x + Math.max(marks.radius(camera), graph.image(vertex) ? this.thumbnail / 2 : 0) + 7;
      const box = { left: beside, top: y - 8, right: beside + context.measureText(name).width, bottom: y + 8 };
      if (taken.some((other) => overlap(box, other))) continue;
      taken.push(box);
      context.lineWidth = 4;
      context.strokeStyle = marks.theme.paper;
      context.strokeText(name, beside, y);
      context.fillStyle = marks.theme.ink;
      context.fillText(name, beside, y);
    }
  }

  /** Where Enter chooses. */
  drawCross() {
    const { context, camera, marks } = this;
    const [x, y] = [camera.width / 2, camera.height / 2];
    context.beginPath();
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(x + 5 * dx, y + 5 * dy);
      context.lineTo(x + 13 * dx, y + 13 * dy);
    }
    context.lineWidth = 1.5;
    context.strokeStyle = marks.theme.ink;
    context.stroke();
  }
}

/** Whether two rectangles have a part in common. */
function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** Keep the direction of a text from reaching beyond it. @param {string} text */
function isolated(text) {
  return `\u2068${text}\u2069`;
}
