/** Which part of the plane is seen, and how large. Screen units are CSS pixels, with y pointing down. */
class Camera {
  /** @param {Float32Array} positions x and y of every vertex */
  constructor(positions) {
    let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let at = 0; at < positions.length; at += 2) {
      left = Math.min(left, positions[at]);
      right = Math.max(right, positions[at]);
      bottom = Math.min(bottom, positions[at + 1]);
      top = Math.max(top, positions[at + 1]);
    }
    this.middle = { x: (left + right) / 2, y: (bottom + top) / 2 };
    // A line or a single point still needs some room around it.
    const least = Math.max(right - left, top - bottom) / 4 || 1;
    this.extent = { x: Math.max(right - left, least), y: Math.max(top - bottom, least) };
    /** How far vertices are apart if they are spread evenly. */
    this.spacing = Math.sqrt((this.extent.x * this.extent.y) / Math.max(positions.length / 2, 1));
    this.x = this.middle.x;
    this.y = this.middle.y;
    this.scale = 1;
    this.width = 1;
    this.height = 1;
    this.goal = null;
  }

  /** Scale at which everything is seen. */
  get fitScale() {
    const margin = Math.min(48, this.width / 8, this.height / 8);
    return Math.min((this.width - 2 * margin) / this.extent.x, (this.height - 2 * margin) / this.extent.y);
  }

  /** Keep what is in the middle when the window changes. @param {number} width @param {number} height */
  resize(width, height) {
    const before = this.fitScale;
    this.width = Math.max(width, 1);
    this.height = Math.max(height, 1);
    this.scale *= this.fitScale / before;
  }

  fit() {
    Object.assign(this, { x: this.middle.x, y: this.middle.y, scale: this.fitScale, goal: null });
  }

  /** @param {number} x @param {number} y in the plane */
  toScreen(x, y) {
    return { x: this.width / 2 + (x - this.x) * this.scale, y: this.height / 2 - (y - this.y) * this.scale };
  }

  /** @param {number} x @param {number} y on the screen */
  toPlane(x, y) {
    return { x: this.x + (x - this.width / 2) / this.scale, y: this.y - (y - this.height / 2) / this.scale };
  }

  /** Move the picture by so many pixels. @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.goal = null;
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
  }

  /**
   * Zoom so that the point under the pointer stays there.
   * @param {number} factor
   * @param {number} x
   * @param {number} y
   */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    this.goal = null;
    const before = this.toPlane(x, y);
    const fit = this.fitScale;
    this.scale = Math.min(Math.max(this.scale * factor, fit / 4), Math.max(fit * 4, 200 / this.spacing));
    const after = this.toPlane(x, y);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
  }

  /** Go to a place, at once or in a few frames. @param {number} x @param {number} y @param {number} scale @param {boolean} gently */
  goTo(x, y, scale, gently) {
    if (gently) this.goal = { x, y, scale };
    else Object.assign(this, { x, y, scale, goal: null });
  }

  /** One frame of the way to the goal. @returns {boolean} whether there is more to go */
  step() {
    if (!this.goal) return false;
    const { x, y, scale } = this.goal;
    const part = 0.25;
    this.x += part * (x - this.x);
    this.y += part * (y - this.y);
    this.scale *= (scale / this.scale) ** part;
    if (Math.abs(x - this.x) * scale < 0.5 && Math.abs(y - this.y) * scale < 0.5 && Math.abs(Math.log(scale / this.scale)) < 0.005) {
      Object.assign(this, { x, y, scale, goal: null });
    }
    return true;
  }
}
