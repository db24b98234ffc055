/** Pointers, wheel and keys on the picture. */

/** Pixels an arrow key moves the picture by. */
const KEY_STEP = 60;

/** A pointer that moved less than this was meant as a click. */
const CLICK_PIXELS = 5;

/** Listens to the picture. */
class Gestures {
  /**
   * @param {Viewer} viewer
   * @param {HTMLCanvasElement} canvas
   */
  constructor(viewer, canvas) {
    this.viewer = viewer;
    this.canvas = canvas;
    this.pointers = new Map();
    this.moved = 0;
    this.listen();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.onDown(event));
    canvas.addEventListener("pointermove", (event) => this.onMove(event));
    canvas.addEventListener("pointerup", (event) => this.onUp(event));
    canvas.addEventListener("pointercancel", (event) => this.release(event));
    canvas.addEventListener("pointerleave", () => this.viewer.hover(-1));
    canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("focus", () => this.viewer.setCross(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => this.viewer.setCross(false));
    document.addEventListener("keydown", (event) => this.onPageKey(event));
  }

  /** @param {MouseEvent} event @returns {{x: number, y: number}} within the canvas */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    if (this.pointers.size === 1) this.moved = 0;
    else this.moved = Infinity; // two fingers are no click
    this.viewer.setCross(false);
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const to = this.place(event);
    const from = this.pointers.get(event.pointerId);
    if (!from) {
      this.viewer.hoverAt(to.x, to.y);
      return;
    }
    this.moved += Math.hypot(to.x - from.x, to.y - from.y);
    if (this.pointers.size === 2) this.pinch(event.pointerId, from, to);
    else if (this.moved >= CLICK_PIXELS) {
      this.canvas.classList.add("held");
      this.viewer.pan(to.x - from.x, to.y - from.y);
    } else return; // from stays, so that the first pixels are not lost
    this.pointers.set(event.pointerId, to);
  }

  /** Two fingers: the picture follows both. */
  pinch(id, from, to) {
    const other = [...this.pointers].find(([pointer]) => pointer !== id)[1];
    const apart = (place) => Math.max(Math.hypot(place.x - other.x, place.y - other.y), 1);
    this.viewer.zoom(apart(to) / apart(from), (to.x + other.x) / 2, (to.y + other.y) / 2);
    this.viewer.pan((to.x - from.x) / 2, (to.y - from.y) / 2);
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.release(event);
    if (this.moved >= CLICK_PIXELS) return;
    const { x, y } = this.place(event);
    this.viewer.hoverAt(x, y, event.pointerType === "touch" ? 22 : 10);
    const { hovered } = this.viewer.state;
    if (hovered >= 0) this.viewer.pick(hovered);
  }

  /** @param {PointerEvent} event */
  release(event) {
    this.pointers.delete(event.pointerId);
    this.canvas.classList.remove("held");
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    event.preventDefault();
    const { x, y } = this.place(event);
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    // Browsers report a pinch on a touchpad as a wheel with Ctrl, in small steps.
    this.viewer.zoom(Math.exp(-Math.max(-300, Math.min(300, pixels)) * (event.ctrlKey ? 0.01 : 0.0015)), x, y);
    this.viewer.hoverAt(x, y);
  }

  /** Keys while the picture has the focus. @param {KeyboardEvent} event */
  onKey(event) {
    const moves = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in moves) {
      const step = event.shiftKey ? 4 * KEY_STEP : KEY_STEP;
      this.viewer.setCross(true);
      this.viewer.pan(moves[event.key][0] * step, moves[event.key][1] * step);
    } else if (event.key === "Enter" || event.key === " ") {
      this.viewer.setCross(true);
      if (this.viewer.state.hovered >= 0) this.viewer.pick(this.viewer.state.hovered);
    } else return;
    event.preventDefault();
  }

  /** Keys wherever the focus is, unless something is being typed. @param {KeyboardEvent} event */
  onPageKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=search]")) return;
    const keys = { "+": "in", "=": "in", "-": "out", "−": "out", "0": "fit", "t": "theme", "h": "hubs", "e": "edges", "/": "search", "Escape": "clear" };
    if (!(event.key in keys)) return;
    event.preventDefault();
    this.viewer.act(keys[event.key]);
  }
}
