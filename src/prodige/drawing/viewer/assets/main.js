/** Start the viewer, and let tests and benchmarks look into it as `window.prodige`. */

/**
 * Move the picture back and forth and count frames.
 * @param {Viewer} viewer
 * @param {number} seconds
 * @returns {Promise<{frames: number, seconds: number, framesPerSecond: number}>}
 */
function benchmarkPanning(viewer, seconds) {
  return new Promise((resolve) => {
    const began = performance.now();
    let frames = 0;
    let at = { x: 0, y: 0 };
    const step = () => {
      const passed = (performance.now() - began) / 1000;
      viewer.camera.pan(-at.x, -at.y);
      at = passed < seconds ? { x: 350 * Math.sin(2 * passed), y: 250 * Math.sin(3 * passed) } : { x: 0, y: 0 };
      viewer.camera.pan(at.x, at.y);
      viewer.frame();
      if (passed >= seconds) {
        resolve({ frames, seconds: passed, framesPerSecond: frames / passed });
        return;
      }
      frames += 1;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}

const viewer = new Viewer(JSON.parse(byId("data").textContent));

window.prodige = {
  /** Milliseconds from opening the page to the first picture; null before. */
  get firstPaint() {
    return viewer.firstPaint;
  },
  /** What is chosen and how it is shown. */
  get state() {
    const { from, to, path, length, hovered } = viewer.state;
    return {
      from, to, path: [...path], length, hovered,
      hubs: viewer.scene.showHubs, edges: viewer.scene.showEdges, theme: document.documentElement.dataset.theme,
      x: viewer.camera.x, y: viewer.camera.y, scale: viewer.camera.scale,
      busy: viewer.waiting || viewer.scene.painting !== null,
    };
  },
  /** Where a vertex is in the window. @param {number} vertex */
  screen(vertex) {
    const box = viewer.canvas.getBoundingClientRect();
    const { x, y } = viewer.camera.toScreen(viewer.graph.positions[2 * vertex], viewer.graph.positions[2 * vertex + 1]);
    return { x: x + box.left, y: y + box.top };
  },
  /** @param {number} seconds */
  benchmark: (seconds) => benchmarkPanning(viewer, seconds),
};
