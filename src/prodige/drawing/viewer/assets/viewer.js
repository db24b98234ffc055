/** The viewer: holds the parts together and answers what gestures and panel ask for. */

/** How near a pointer must come to a vertex, in pixels. */
const REACH = 10;

/** One graph on one page. */
class Viewer {
  /** @param {object} data what the page holds */
  constructor(data) {
    this.graph = new GraphData(data);
    this.canvas = byId("picture");
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.camera = new Camera(this.graph.positions);
    this.finder = new Finder(this.graph.positions, this.camera);
    this.marks = new Marks(this.graph, () => this.refresh());
    this.scene = new Scene(this.graph, this.marks, this.finder);
    this.overlay = new Overlay(this.graph, this.marks, this.finder);
    this.state = { from: -1, to: -1, path: [], length: Infinity, hovered: -1, cross: false };
    this.paths = null;
    this.waiting = false;
    this.frames = 0;
    this.firstPaint = null;
    this.dark = window.matchMedia("(prefers-color-scheme: dark)");
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.panel = new Panel(this);
    this.gestures = new Gestures(this, this.canvas);
    this.dark.addEventListener("change", () => this.setTheme(this.dark.matches));
    this.setTheme(this.dark.matches);
    new ResizeObserver(() => { if (this.resize()) this.frame(); }).observe(this.canvas);
    this.resize();
    this.camera.fit();
    this.scene.work(this.camera, this.ratio, Infinity); // the first picture at once, later ones in slices
    this.frame();
    requestAnimationFrame(() => setTimeout(() => { this.firstPaint = performance.now(); }));
  }

  // -- drawing ------------------------------------------------------------------------------------------------------

  /** Device pixels in a CSS pixel; beyond 2 nobody sees a difference. */
  get ratio() {
    return Math.min(window.devicePixelRatio || 1, 2);
  }

  /** Follow the size of the window. @returns {boolean} whether it has changed */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return false;
    const [wide, high] = [Math.round(width * this.ratio), Math.round(height * this.ratio)];
    if (this.canvas.width === wide && this.canvas.height === high && this.camera.width === width) return false;
    this.canvas.width = wide;
    this.canvas.height = high;
    this.camera.resize(width, height);
    return true;
  }

  /** Draw in the next frame. */
  invalidate() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.frame();
    });
  }

  /** What is shown has changed, not only the view. */
  refresh() {
    this.scene.refresh();
    this.invalidate();
  }

  frame() {
    const { camera, context, canvas, ratio, state } = this;
    const moving = camera.step();
    const painting = this.scene.work(camera, ratio);
    if (state.cross) this.hoverAt(camera.width / 2, camera.height / 2, 60, false);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.marks.theme.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.globalAlpha = state.path.length > 1 ? 0.3 : state.from >= 0 ? 0.75 : 1;
    this.scene.draw(context, camera, ratio);
    context.globalAlpha = 1;
    this.overlay.draw(context, camera, ratio, state, this.scene);
    this.placeCard();
    this.frames += 1;
    if (moving || painting) this.invalidate();
  }

  /** A small canvas with the image or the mark of a vertex. @param {number} vertex @param {number} side */
  picture(vertex, side) {
    const canvas = this.blank(side);
    const context = canvas.getContext("2d");
    const [x, y] = [canvas.width / 2, canvas.height / 2];
    if (!this.marks.drawImage(context, vertex, x, y, side - 2, this.ratio)) {
      this.marks.draw(context, [vertex], [x, y], 5 * this.ratio);
    }
    return canvas;
  }

  /** A small canvas with a mark, for the legend. @param {number} kind as of {@link Marks#kind} */
  mark(kind) {
    const canvas = this.blank(18);
    this.marks.drawKind(canvas.getContext("2d"), kind, [canvas.width / 2, canvas.height / 2], 5 * this.ratio);
    return canvas;
  }

  /** An empty canvas, so many pixels wide and high. @param {number} side */
  blank(side) {
    const canvas = element("canvas", { "aria-hidden": "true" });
    canvas.width = side * this.ratio;
    canvas.height = side * this.ratio;
    canvas.style.width = `${side}px`;
    canvas.style.height = `${side}px`;
    return canvas;
  }

  // -- what users do ------------------------------------------------------------------------------------------------

  pan(dx, dy) {
    this.camera.pan(dx, dy);
    if (!this.state.cross) this.hover(-1);
    this.invalidate();
  }

  zoom(factor, x, y) {
    this.camera.zoom(factor, x, y);
    this.invalidate();
  }

  /** Show a vertex in the middle, near enough to see its neighbours. @param {number} vertex */
  goTo(vertex) {
    const { positions } = this.graph;
    const scale = Math.max(this.camera.scale, 24 / this.camera.spacing);
    this.camera.goTo(positions[2 * vertex], positions[2 * vertex + 1], scale, !this.still.matches);
    this.invalidate();
  }

  /** @param {number} x @param {number} y on the screen */
  hoverAt(x, y, reach = REACH, redraw = true) {
    const place = this.camera.toPlane(x, y);
    const room = reach + Math.max(this.marks.radius(this.camera), this.scene.thumbnail / 2);
    this.hover(this.finder.nearest(place.x, place.y, room / this.camera.scale, this.scene.shown), redraw);
  }

  /** @param {number} vertex -1 for none */
  hover(vertex, redraw = true) {
    if (vertex === this.state.hovered) return;
    this.state.hovered = vertex;
    this.canvas.classList.toggle("over", vertex >= 0);
    this.fillCard();
    if (redraw) this.invalidate();
  }

  /** Choose a vertex: the start of a path, or its end if there is a start already. @param {number} vertex */
  pick(vertex) {
    const { state } = this;
    if (state.from < 0 || state.to >= 0 || vertex === state.from) {
      Object.assign(state, { from: vertex, to: -1, path: [], length: Infinity });
      this.paths = new Paths(this.graph, vertex);
    } else {
      Object.assign(state, { to: vertex, path: this.paths.to(vertex), length: this.paths.distances[vertex] });
    }
    this.panel.showSelection(state);
    this.panel.tellSelection(state);
    this.fillCard();
    this.invalidate();
  }

  clear() {
    Object.assign(this.state, { from: -1, to: -1, path: [], length: Infinity });
    this.paths = null;
    this.panel.showSelection(this.state);
    this.panel.tellSelection(this.state);
    this.fillCard();
    this.invalidate();
  }

  /** @param {number} vertex @returns {number} its distance from the first chosen one */
  distance(vertex) {
    return this.paths ? this.paths.distances[vertex] : Infinity;
  }

  /** Buttons and keys. @param {string|undefined} what */
  act(what) {
    if (what === "in") this.zoom(1.5);
    else if (what === "out") this.zoom(1 / 1.5);
    else if (what === "fit") this.camera.goTo(this.camera.middle.x, this.camera.middle.y, this.camera.fitScale, !this.still.matches);
    else if (what === "theme") this.setTheme(document.documentElement.dataset.theme !== "dark");
    else if (what === "hubs") this.setHubs(!this.scene.showHubs);
    else if (what === "edges") this.setEdges(!this.scene.showEdges);
    else if (what === "search") byId("query").focus();
    else if (what === "clear") this.clear();
    this.invalidate();
  }

  /** @param {boolean} shown */
  setHubs(shown) {
    byId("hubs").checked = shown;
    this.scene.showHubs = shown;
    this.hover(-1);
    this.refresh();
  }

  /** @param {boolean} shown */
  setEdges(shown) {
    byId("edges").checked = shown;
    this.scene.showEdges = shown;
    this.refresh();
  }

  /** @param {number} group @returns {boolean} whether it is shown now */
  toggleGroup(group) {
    const { hiddenGroups } = this.scene;
    const shown = hiddenGroups.delete(group);
    if (!shown) hiddenGroups.add(group);
    this.hover(-1);
    this.refresh();
    return shown;
  }

  /** @param {boolean} shown whether the cross for choosing by keyboard is there */
  setCross(shown) {
    if (this.state.cross === shown) return;
    this.state.cross = shown;
    if (!shown) this.hover(-1);
    else this.hoverAt(this.camera.width / 2, this.camera.height / 2, 60);
    this.invalidate();
  }

  /** @param {boolean} dark */
  setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    const style = getComputedStyle(document.documentElement);
    const names = ["paper", "ink", "quiet", "edge", "outline", "hub", "plain", "accent"];
    this.marks.setTheme(Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])));
    this.panel.showLegend();
    this.panel.showSelection(this.state);
    this.refresh();
  }

  // -- the card beside the pointer ----------------------------------------------------------------------------------

  fillCard() {
    const { state, graph } = this;
    const card = byId("card");
    card.hidden = state.hovered < 0;
    if (card.hidden) return;
    const vertex = state.hovered;
    const label = element("p", { class: "label", dir: "auto" });
    label.textContent = shorten(graph.label(vertex), MOST_LETTERS);
    const facts = [graph.isHub(vertex) ? "hub" : null, `degree ${graph.degree(vertex)}`].filter(Boolean);
    const texts = element("div", {}, label, element("p", { class: "quiet" }, facts.join(" · ")));
    if (graph.group(vertex) >= 0) {
      const group = element("span", { class: "label", dir: "auto" });
      group.textContent = shorten(graph.groupNames[graph.group(vertex)], 60);
      texts.append(element("p", { class: "quiet key" }, this.mark(graph.group(vertex)), group));
    }
    if (this.paths && vertex !== state.from) {
      const from = element("bdi", { dir: "auto" });
      from.textContent = shorten(graph.label(state.from), 40);
      texts.append(element("p", { class: "quiet" }, `${showLength(this.distance(vertex))} from `, from));
    }
    card.replaceChildren(...(graph.image(vertex) ? [this.picture(vertex, 64)] : []), texts);
    this.placeCard();
  }

  /** Beside the vertex, on the side where there is room. */
  placeCard() {
    const { hovered } = this.state;
    const card = byId("card");
    if (hovered < 0 || card.hidden) return;
    const { x, y } = this.camera.toScreen(this.graph.positions[2 * hovered], this.graph.positions[2 * hovered + 1]);
    const [wide, high] = [card.offsetWidth, card.offsetHeight];
    const left = x + 16 + wide > this.camera.width ? x - 16 - wide : x + 16;
    const top = y + 16 + high > this.camera.height ? y - 16 - high : y + 16;
    card.style.transform = `translate(${Math.round(Math.max(4, left))}px, ${Math.round(Math.max(4, top))}px)`;
  }
}
