/**
 * The still part of the picture, edges and vertices, kept in a bitmap that reaches beyond the window.
 *
 * Moving the picture moves the bitmap, which costs next to nothing. A new one is painted, a few milliseconds in every
 * frame, when the old one is of another scale or its border comes near; until it is ready the old one is stretched.
 */

/** How far the bitmap reaches beyond each side of the window, as a part of the window. */
const MARGIN = 0.25;

/** Device pixels of a bitmap: more would take too long on large screens. */
const MOST_PIXELS = 5e6;

/** Milliseconds of painting in a frame. */
const SLICE = 7;

/** Thumbnails in sight; where there would be more, all vertices are dots. */
const MOST_THUMBNAILS = 2500;

/** What is drawn between two looks at the clock. Few enough that no group lies on top of all others. */
const VERTICES_AT_ONCE = 300;

/** Paints edges and vertices. */
class Scene {
  /**
   * @param {GraphData} graph
   * @param {Marks} marks
   * @param {Finder} finder
   */
  constructor(graph, marks, finder) {
    this.graph = graph;
    this.marks = marks;
    this.finder = finder;
    this.edgePainter = new EdgePainter(graph);
    this.showHubs = true;
    this.showEdges = true;
    this.hiddenGroups = new Set();
    this.current = null; // what is shown: a bitmap and the frame it was painted for
    this.painting = null; // what is being made
    this.stale = true;
    this.shown = (vertex) => this.isShown(vertex);
  }

  /** @param {number} vertex */
  isShown(vertex) {
    if (vertex >= this.graph.nItems && !this.showHubs) return false;
    return this.hiddenGroups.size === 0 || !this.hiddenGroups.has(this.graph.group(vertex));
  }

  /** Width in pixels of the thumbnails that are shown, 0 if there are none. */
  get thumbnail() {
    return this.current ? this.current.frame.thumbnail : 0;
  }

  /** What is shown has changed: paint anew. */
  refresh() {
    this.stale = true;
  }

  /**
   * Paint for some milliseconds if something has to be painted.
   * @param {Camera} camera
   * @param {number} ratio
   * @param {number} milliseconds
   * @returns {boolean} whether there is more to do
   */
  work(camera, ratio, milliseconds = SLICE) {
    if (this.stale || (!this.painting && !this.suits(camera))) {
      this.painting = this.begin(camera, ratio);
      this.stale = false;
    }
    if (!this.painting) return false;
    const deadline = performance.now() + milliseconds;
    do {
      if (this.painting.steps.next().done) {
        this.current = this.painting;
        this.painting = null;
        return !this.suits(camera);
      }
    } while (performance.now() < deadline);
    return true;
  }

  /** Whether the bitmap shows what the camera sees, and some more. @param {Camera} camera */
  suits(camera) {
    if (!this.current) return false;
    const { frame } = this.current;
    if (Math.abs(frame.scale / (camera.scale * frame.ratio) - 1) > 1e-6) return false;
    if (frame.windowWidth !== camera.width || frame.windowHeight !== camera.height) return false;
    return Math.abs(camera.x - frame.x) * camera.scale < 0.7 * MARGIN * camera.width
      && Math.abs(camera.y - frame.y) * camera.scale < 0.7 * MARGIN * camera.height;
  }

  /** @param {Camera} camera @param {number} ratio */
  begin(camera, ratio) {
    const [wide, high] = [camera.width * (1 + 2 * MARGIN), camera.height * (1 + 2 * MARGIN)];
    const fine = Math.min(ratio, Math.sqrt(MOST_PIXELS / (wide * high)));
    const frame = {
      width: Math.ceil(wide * fine),
      height: Math.ceil(high * fine),
      ratio: fine,
      scale: camera.scale * fine,
      x: camera.x,
      y: camera.y,
      windowWidth: camera.width,
      windowHeight: camera.height,
    };
    frame.left = camera.x - frame.width / 2 / frame.scale;
    frame.top = camera.y + frame.height / 2 / frame.scale;
    const bitmap = document.createElement("canvas");
    bitmap.width = frame.width;
    bitmap.height = frame.height;
    // Pixels are written by the processor: it should not have to fetch them from a graphics card.
    const context = bitmap.getContext("2d", { willReadFrequently: true });
    const radius = this.marks.radius(camera);
    return { frame, bitmap, steps: this.paint(context, frame, radius, this.marks.thumbnail(camera, this.finder.gap)) };
  }

  /** Edges first, then items, then hubs on top. */
  * paint(context, frame, radius, thumbnail) {
    const { graph, marks } = this;
    if (this.showEdges) yield* this.edgePainter.paint(context, frame, this.shown, marks.theme.edge);
    const visible = [];
    const edge = 2 * LARGEST_RADIUS * frame.ratio / frame.scale;
    this.finder.within(
      frame.left - edge, frame.top - frame.height / frame.scale - edge,
      frame.left + frame.width / frame.scale + edge, frame.top + edge,
      (vertex) => { if (this.isShown(vertex)) visible.push(vertex); },
    );
    visible.sort((a, b) => a - b); // the order of the grid would show where its squares meet
    frame.thumbnail = visible.length <= MOST_THUMBNAILS ? thumbnail : 0;
    for (let from = 0; from < visible.length; from += VERTICES_AT_ONCE) {
      const [dots, places] = [[], []];
      for (const vertex of visible.slice(from, from + VERTICES_AT_ONCE)) {
        const x = (graph.positions[2 * vertex] - frame.left) * frame.scale;
        const y = (frame.top - graph.positions[2 * vertex + 1]) * frame.scale;
        if (frame.thumbnail > 0 && marks.drawImage(context, vertex, x, y, thumbnail, frame.ratio)) continue;
        dots.push(vertex);
        places.push(x, y);
      }
      marks.draw(context, dots, places, radius * frame.ratio);
      yield;
    }
  }

  /**
   * Copy the bitmap to where it belongs.
   * @param {CanvasRenderingContext2D} context in device pixels
   * @param {Camera} camera
   * @param {number} ratio
   */
  draw(context, camera, ratio) {
    if (!this.current) return;
    const { frame, bitmap } = this.current;
    const corner = camera.toScreen(frame.left, frame.top);
    const stretch = (camera.scale * ratio) / frame.scale;
    const [x, y] = [corner.x * ratio, corner.y * ratio];
    if (Math.abs(stretch - 1) < 1e-6) context.drawImage(bitmap, Math.round(x), Math.round(y)); // stays sharp
    else context.drawImage(bitmap, x, y, frame.width * stretch, frame.height * stretch);
  }
}
