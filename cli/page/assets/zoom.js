// Zoom of the memory chart and the timeline along their common axis of time.

const kLeastViewNs = 20;

class Zoom {
  constructor(page, charts) {
    this.page = page;
    for (const svg of charts) {
      svg.onpointerdown = (event) => event.button === 0 && this.beginDrag(svg, event);
      svg.ondblclick = () => this.show(0, page.axisNs);
      svg.addEventListener('wheel', (event) => this.wheel(svg, event), {passive: false});
    }
    const controls = add(byId('memory-controls'), 'span', {class: 'choice', role: 'group', 'aria-label': 'zoom'});
    const button = (text, title, factor) => add(controls, 'button', {title, onclick: () => this.scale(factor)}, text);
    button('+', 'zoom in around the middle', 0.5).id = 'zoom-in';
    button('−', 'zoom out', 2).id = 'zoom-out';
    button('whole step', 'show the whole step', Infinity).id = 'zoom-all';
  }

  // Shows the step between two times, kept within the axis.
  show(begin, end) {
    const {axisNs} = this.page, length = Math.min(axisNs, Math.max(kLeastViewNs, end - begin));
    const from = Math.min(Math.max(0, begin), axisNs - length);
    this.page.view = [from, from + length];
    this.page.drawTime();
  }

  scale(factor, around = (this.page.view[0] + this.page.view[1]) / 2) {
    if (factor === Infinity) return this.show(0, this.page.axisNs);
    const [begin, end] = this.page.view;
    this.show(around - (around - begin) * factor, around + (end - around) * factor);
  }

  timeAt(svg, event) {
    const {x} = pointIn(svg, event), width = svg.viewBox.baseVal.width, [begin, end] = this.page.view;
    const share = (x - kMargin.left) / (width - kMargin.left - kMargin.right);
    return begin + Math.min(1, Math.max(0, share)) * (end - begin);
  }

  // The wheel alone scrolls the page; with Ctrl or Shift it zooms.
  wheel(svg, event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    this.scale((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, this.timeAt(svg, event));
  }

  beginDrag(svg, event) {
    const from = this.timeAt(svg, event), start = pointIn(svg, event).x;
    const {height} = svg.viewBox.baseVal;
    const shade = add(svg, 'rect', {y: 0, height, fill: 'var(--accent)', opacity: 0.16, class: 'through'});
    hideTooltip();
    svg.setPointerCapture(event.pointerId);
    const hover = svg.onpointermove;
    svg.onpointermove = (move) => {
      const {x} = pointIn(svg, move);
      shade.setAttribute('x', Math.min(start, x));
      shade.setAttribute('width', Math.abs(x - start));
    };
    const finish = (release) => {
      svg.onpointermove = hover;
      svg.onpointerup = svg.onpointercancel = null;
      shade.remove();
      const to = this.timeAt(svg, release), isDrag = Math.abs(pointIn(svg, release).x - start) > 5;
      if (isDrag && release.type === 'pointerup') this.show(Math.min(from, to), Math.max(from, to));
    };
    svg.onpointerup = svg.onpointercancel = finish;
  }
}
