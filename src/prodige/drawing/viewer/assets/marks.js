/** How vertices look: a colour and a shape for each group, rings for hubs, thumbnails where there are images. */

/** Okabe and Ito's colours, which the colour-blind can tell apart; black is left to the text. */
const COLORS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442"];

/** After all colours were used they come again with the next shape. */
const SHAPES = ["circle", "square", "triangle", "diamond"];

/** Pixels; larger marks would hide the edges. */
const LARGEST_RADIUS = 7;

/** @param {number} group @returns {{color: string, shape: string}} */
function styleOf(group) {
  return { color: COLORS[group % COLORS.length], shape: SHAPES[Math.floor(group / COLORS.length) % SHAPES.length] };
}

/**
 * Add a shape of about the same area as a circle to the path of a canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {string} shape
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
function traceShape(context, shape, x, y, radius) {
  if (shape === "circle") {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  } else if (shape === "square") {
    const half = 0.89 * radius;
    context.rect(x - half, y - half, 2 * half, 2 * half);
  } else {
    const reach = (shape === "triangle" ? 1.4 : 1.25) * radius;
    (shape === "triangle" ? [-90, 30, 150] : [-90, 0, 90, 180]).forEach((degrees, corner) => {
      const angle = (degrees * Math.PI) / 180;
      context[corner ? "lineTo" : "moveTo"](x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    });
    context.closePath();
  }
}

/** Draws vertices. Those that look alike are one path: ten thousand by themselves would take ten times as long. */
class Marks {
  /**
   * @param {GraphData} graph
   * @param {() => void} changed called when images have arrived
   */
  constructor(graph, changed) {
    this.graph = graph;
    this.theme = {};
    /** Sheets of images that have arrived. */
    this.sheets = [];
    (graph.images ? graph.images.sheets : []).forEach((source, at) => {
      const image = new Image();
      image.addEventListener("load", () => {
        this.sheets[at] = image;
        changed();
      });
      image.src = source;
    });
  }

  /** @param {Object<string, string>} theme colours of the page */
  setTheme(theme) {
    this.theme = theme;
  }

  /** @param {Camera} camera @returns {number} pixels */
  radius(camera) {
    return Math.min(Math.max(0.32 * camera.scale * camera.spacing, 1.6), LARGEST_RADIUS);
  }

  /** Width of thumbnails in pixels; 0 where there is no room for them. @param {Camera} camera @param {number} gap */
  thumbnail(camera, gap) {
    if (!this.graph.images) return 0;
    const room = 1.1 * camera.scale * gap; // they may overlap a little
    return room < 13 ? 0 : Math.min(room, Math.max(2 * this.graph.images.width, 48));
  }

  /** @param {number} vertex @returns {number} its group, -1 for an item without one, -2 for a hub without one */
  kind(vertex) {
    const group = this.graph.group(vertex);
    return group >= 0 ? group : this.graph.isHub(vertex) ? -2 : -1;
  }

  /**
   * Draw vertices.
   * @param {CanvasRenderingContext2D} context in device pixels
   * @param {number[]} vertices
   * @param {number[]} places x and y of each, in device pixels
   * @param {number} radius device pixels
   */
  draw(context, vertices, places, radius) {
    const kinds = new Map();
    vertices.forEach((vertex, at) => {
      const kind = this.kind(vertex);
      if (!kinds.has(kind)) kinds.set(kind, []);
      kinds.get(kind).push(places[2 * at], places[2 * at + 1]);
    });
    for (const [kind, some] of kinds) this.drawKind(context, kind, some, radius);
  }

  /** Draw marks that look alike. @param {number} kind as of a vertex */
  drawKind(context, kind, places, radius) {
    const hub = kind === -2;
    const { color, shape } = kind < 0 ? { color: this.theme.plain, shape: "circle" } : styleOf(kind);
    context.beginPath();
    for (let at = 0; at < places.length; at += 2) {
      traceShape(context, shape, places[at], places[at + 1], hub ? 1.2 * radius : radius);
    }
    context.fillStyle = hub ? this.theme.paper : color;
    context.fill();
    if (!hub && radius <= 2.5) return; // an outline would be all that is seen
    context.lineWidth = hub ? Math.max(1, 0.4 * radius) : Math.min(1, radius / 4);
    context.strokeStyle = hub ? this.theme.hub : this.theme.outline;
    context.stroke();
  }

  /**
   * Draw the image of a vertex, framed in its colour.
   * @returns {boolean} whether there is one
   */
  drawImage(context, vertex, x, y, width, ratio) {
    const cell = this.graph.image(vertex);
    const sheet = cell && this.sheets[cell.sheet];
    if (!sheet) return false;
    const { width: w, height: h } = this.graph.images;
    const side = width * ratio;
    const [wide, high] = w > h ? [side, (side * h) / w] : [(side * w) / h, side];
    const [left, top] = [Math.round(x - wide / 2), Math.round(y - high / 2)];
    context.imageSmoothingEnabled = wide < 3 * w; // larger pixels should look like pixels
    context.drawImage(sheet, cell.x, cell.y, w, h, left, top, wide, high);
    const group = this.graph.group(vertex);
    if (group >= 0) {
      context.lineWidth = Math.max(1, width / 16) * ratio;
      context.strokeStyle = styleOf(group).color;
      context.strokeRect(left, top, wide, high);
    }
    return true;
  }
}
