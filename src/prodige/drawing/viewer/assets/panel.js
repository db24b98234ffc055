/**
 * The panel beside the picture: search, path, legend, the graph in words.
 *
 * Texts of the data are set with textContent only, in elements of their own with dir="auto".
 */

/** Letters of a label that are shown in lists and in the card; the whole one is in the file. */
const MOST_LETTERS = 240;

/**
 * Make an element.
 * @param {string} tag
 * @param {Object<string, string>} attributes
 * @param {...(Node|string)} children
 */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** @param {string} id */
function byId(id) {
  return document.getElementById(id);
}

/** Fills the panel and listens to it. */
class Panel {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.graph = viewer.graph;
    this.index = new LabelIndex(viewer.graph);
    this.found = [];
    this.active = -1;
    byId("title").textContent = this.graph.title;
    byId("counts").textContent = this.counts();
    byId("hubs-switch").hidden = this.graph.nItems === this.graph.nVertices;
    this.listen();
    this.fillWords();
  }

  counts() {
    const { nItems, nVertices, nEdges } = this.graph;
    const named = (n, word) => `${n.toLocaleString("en")}\u00a0${word}${n === 1 ? "" : "s"}`;
    const hubs = nVertices > nItems ? [named(nVertices - nItems, "hub")] : [];
    return [named(nItems, "item"), ...hubs, named(nEdges, "edge")].join(" · ");
  }

  listen() {
    const { viewer } = this;
    const query = byId("query");
    query.addEventListener("input", () => this.search());
    query.addEventListener("keydown", (event) => this.onSearchKey(event));
    byId("clear").addEventListener("click", () => viewer.clear());
    byId("hubs").addEventListener("change", (event) => viewer.setHubs(event.target.checked));
    byId("edges").addEventListener("change", (event) => viewer.setEdges(event.target.checked));
    byId("zoom").addEventListener("click", (event) => viewer.act(event.target.closest("button")?.dataset.do));
    byId("in-words").addEventListener("toggle", () => this.fillWords());
  }

  // -- search -------------------------------------------------------------------------------------------------------

  search() {
    const { vertices, total } = this.index.find(byId("query").value);
    this.found = vertices;
    this.active = vertices.length ? 0 : -1;
    const list = byId("found");
    list.replaceChildren(...vertices.map((vertex, at) => {
      const row = element("li", { role: "option", id: `found-${at}` }, ...this.row(vertex));
      row.addEventListener("click", () => this.choose(at));
      return row;
    }));
    const asked = byId("query").value.trim() !== "";
    list.hidden = !vertices.length;
    byId("found-count").hidden = !asked;
    byId("found-count").textContent = total > vertices.length ? `the first ${vertices.length} of ${total.toLocaleString("en")}`
      : total ? "" : "nothing found";
    byId("query").setAttribute("aria-expanded", String(vertices.length > 0));
    this.mark();
  }

  /** Show which result Enter would choose. */
  mark() {
    byId("found").childNodes.forEach((row, at) => row.setAttribute("aria-selected", String(at === this.active)));
    const row = byId(`found-${this.active}`);
    if (row) {
      byId("query").setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    } else byId("query").removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  onSearchKey(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.found.length) {
      this.active = (this.active + steps[event.key] + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter" && this.active >= 0) {
      this.choose(this.active);
    } else if (event.key === "Escape" && byId("query").value) {
      this.clearSearch();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  choose(at) {
    const vertex = this.found[at];
    this.clearSearch();
    this.viewer.pick(vertex);
    this.viewer.goTo(vertex);
  }

  clearSearch() {
    byId("query").value = "";
    this.search();
  }

  // -- the path -----------------------------------------------------------------------------------------------------

  /** Show what is chosen. @param {{from: number, to: number, path: number[], length: number}} state */
  showSelection(state) {
    const [one, two] = [state.from >= 0, state.to >= 0];
    byId("clear").hidden = !one;
    byId("hint").hidden = two;
    byId("hint").textContent = one ? "Choose a second vertex." : "Choose two vertices in the picture or by search.";
    byId("length").hidden = !two;
    const steps = Math.max(0, state.path.length - 1);
    byId("length").replaceChildren(showLength(state.length));
    if (steps) byId("length").append(" ", element("small", {}, `over ${steps} ${steps === 1 ? "edge" : "edges"}`));
    const listed = two ? (state.path.length ? state.path : [state.from, state.to]) : one ? [state.from] : [];
    byId("path").hidden = !one;
    byId("path").replaceChildren(...listed.map((vertex) => this.pathRow(vertex)));
  }

  /** Tell it to whoever listens to the page. @param {{from: number, to: number, length: number}} state */
  tellSelection(state) {
    const name = (vertex) => isolated(shorten(this.graph.label(vertex), MOST_LETTERS));
    byId("news").textContent = state.to >= 0 ? `${name(state.from)} to ${name(state.to)}: ${showLength(state.length)}`
      : state.from >= 0 ? `${name(state.from)} is chosen, degree ${this.graph.degree(state.from)}` : "nothing is chosen";
  }

  /** @param {number} vertex */
  pathRow(vertex) {
    const length = this.viewer.distance(vertex);
    const button = element("button", { type: "button" }, ...this.row(vertex), element("span", { class: "number" }, showLength(length)));
    button.addEventListener("click", () => this.viewer.goTo(vertex));
    return element("li", {}, button);
  }

  /** A mark or an image, and the label. @param {number} vertex */
  row(vertex) {
    const label = element("span", { class: "row-label", dir: "auto" });
    label.textContent = shorten(this.graph.label(vertex), MOST_LETTERS);
    return [this.viewer.picture(vertex, 20), label];
  }

  // -- legend -------------------------------------------------------------------------------------------------------

  /** Made anew when colours change. */
  showLegend() {
    const { graph, viewer } = this;
    const counts = new Array(graph.groupNames.length).fill(0);
    graph.groupOf.forEach((group) => { counts[group] += 1; });
    const rows = graph.groupNames.map((name, group) => {
      const label = element("span", { class: "row-label", dir: "auto" });
      label.textContent = shorten(name, MOST_LETTERS);
      const pressed = String(!viewer.scene.hiddenGroups.has(group));
      const button = element("button", { type: "button", "aria-pressed": pressed, title: "Show or hide" },
        viewer.mark(group), label, element("span", { class: "number" }, counts[group].toLocaleString("en")));
      button.addEventListener("click", () => button.setAttribute("aria-pressed", String(viewer.toggleGroup(group))));
      return element("li", {}, button);
    });
    const plain = (mark, text) => element("li", { class: "key" }, viewer.mark(mark), text);
    if (!rows.length) rows.push(plain(-1, "item"));
    if (graph.nVertices > graph.nItems && graph.groupOf.length <= graph.nItems) rows.push(plain(-2, "hub"));
    byId("groups").replaceChildren(...rows);
  }

  // -- words --------------------------------------------------------------------------------------------------------

  /** The graph without the picture; its longer part is made when it is asked for. */
  fillWords() {
    const { graph } = this;
    const graphInWords = graph.words ?? `A graph of ${this.counts().replaceAll(" ·", ",")}.`;
    const words = [element("p", {}, `${graphInWords} The vertices with the most edges:`)];
    if (byId("in-words").open) {
      const order = Array.from({ length: graph.nVertices }, (_, vertex) => vertex)
        .sort((a, b) => graph.degree(b) - graph.degree(a)).slice(0, 20);
      words.push(element("ul", {}, ...order.map((vertex) => {
        const label = element("bdi", { dir: "auto" });
        label.textContent = shorten(graph.label(vertex), MOST_LETTERS);
        return element("li", {}, label, `: degree ${graph.degree(vertex)}`);
      })));
    }
    byId("words").replaceChildren(...words);
    const canvas = byId("picture");
    canvas.setAttribute("aria-label", `${this.graph.title}: ${this.counts().replaceAll(" ·", ",")}`);
  }
}
