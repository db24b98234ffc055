/** Search by label: exact ones first, then those that begin with the words, then those that contain them. */

/** Results that are listed. */
const MOST_FOUND = 50;

/** Finds vertices by what they are called. */
class LabelIndex {
  /** @param {GraphData} graph */
  constructor(graph) {
    this.graph = graph;
    this.folded = null;
  }

  /** Labels without upper case; made when they are first needed. */
  get texts() {
    if (!this.folded) {
      this.folded = Array.from({ length: this.graph.nVertices }, (_, vertex) => fold(this.graph.label(vertex)));
    }
    return this.folded;
  }

  /**
   * @param {string} query a part of a label, or the number of a vertex
   * @returns {{vertices: number[], total: number}} the best, and how many there are
   */
  find(query) {
    const wanted = fold(query.trim());
    if (!wanted) return { vertices: [], total: 0 };
    const ranked = [[], [], []];
    this.texts.forEach((text, vertex) => {
      const at = text.indexOf(wanted);
      if (String(vertex) === wanted || text === wanted) ranked[0].push(vertex);
      else if (at === 0) ranked[1].push(vertex);
      else if (at > 0) ranked[2].push(vertex);
    });
    const all = ranked.flat();
    return { vertices: all.slice(0, MOST_FOUND), total: all.length };
  }
}

/** @param {string} text */
function fold(text) {
  return text.normalize("NFKC").toLowerCase();
}
