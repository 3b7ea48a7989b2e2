// The page: its runs, the shown run, the shown part of the step, and the charts.

class Page {
  constructor(data) {
    this.runs = data.runs.map((columns) => new Run(columns));
    this.run = this.runs[this.runs.length - 1];
    // All traces have the same axis, which ends with the longest step.
    this.axisNs = Math.max(...this.runs.map((run) => run.stepNs));
    this.view = [0, this.axisNs];
    this.pickedPeak = 0;
    this.addControls();
    this.memory = new MemoryChart(this);
    this.timeline = new Timeline(this);
    this.zoom = new Zoom(this, [this.memory.svg, this.timeline.svg]);
    if (data.frontier) this.frontier = new FrontierChart(this, data.frontier);
    this.tree = new TreeMap(this);
    this.table = new SavedTable(this);
    if (this.runs.length > 1) drawComparison(this.runs);
    this.draw();
    addEventListener('resize', () => this.drawSoon());
  }

  addControls() {
    const controls = byId('page-controls');
    if (this.runs.length > 1) {
      addChoice(controls, 'trace', this.runs.map((run, number) => [number, run.label]), this.runs.length - 1, (number) => {
        this.run = this.runs[number];
        this.view = [0, this.axisNs];
        this.draw();
      });
    }
    const root = document.documentElement;
    const setTheme = (isDark) => { root.dataset.theme = isDark ? 'dark' : 'light'; };
    const query = matchMedia('(prefers-color-scheme: dark)');
    setTheme(query.matches);
    query.addEventListener('change', () => setTheme(query.matches));
    add(controls, 'button', {id: 'theme', onclick: () => setTheme(root.dataset.theme !== 'dark')}, 'light / dark');
  }

  pickPeak(bytes) {
    this.pickedPeak = bytes;
    this.memory.draw();
  }

  // Draws what depends on the shown part of the step.
  drawTime() {
    this.memory.draw();
    this.timeline.draw();
  }

  draw() {
    this.drawTime();
    if (this.frontier) this.frontier.draw();
    this.tree.draw();
    this.table.draw();
  }

  drawSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), 80);
  }
}

readData().then((data) => {
  const page = new Page(data);
  document.documentElement.dataset.ready = 'true';
  return page;
});
