// Comparison of the runs, side by side: figures, and what the device holds at each peak.

// A change that is smaller is better in these.
const kSmallerIsBetter = /peak_bytes$|^step_time|^exposed|^launch_gap/;

function drawComparison(runs) {
  byId('comparison-section').hidden = false;
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.recorded)))].filter((name) => !/_(min|max)$/.test(name));
  drawComparisonTable(byId('comparison-metrics'), 'figure', runs, names.map((name) => ({
    name, isCode: true, values: runs.map((run) => run.recorded[name]), text: (value) => metricText(name, value),
    isJudged: kSmallerIsBetter.test(name),
  })).filter((row) => row.values.some(Boolean)));
  const contents = runs.map((run) => run.peakContent());
  const parts = [...new Set(contents.flatMap((content) => [...content.keys()]))];
  const rows = parts.map((name) => ({name, values: contents.map((content) => content.get(name) || 0), text: bytesText}));
  rows.push({name: 'peak', values: runs.map((run) => run.peakBytes), text: bytesText, isJudged: true});
  drawComparisonTable(byId('comparison-peaks'), 'bytes', runs, rows);
  const peaks = runs.map((run) => `${run.label} ${run.peakText()}`);
  byId('comparison-caption').textContent = `The peaks: ${peaks.join('; ')}.`;
}

function drawComparisonTable(table, title, runs, rows) {
  const head = add(add(table, 'thead'), 'tr');
  add(head, 'th', {}, title);
  runs.forEach((run, number) => {
    add(head, 'th', {class: 'number'}, run.label);
    if (number) add(head, 'th', {class: 'number'}, 'change');
  });
  const body = add(table, 'tbody');
  for (const {name, isCode, values, text, isJudged} of rows) {
    const line = add(body, 'tr');
    add(line, 'td', {class: isCode ? 'code' : ''}, name);
    values.forEach((value, number) => {
      add(line, 'td', {class: 'number'}, value === undefined ? '-' : text(value));
      if (!number) return;
      const [base] = values, isKnown = value !== undefined && base !== undefined;
      const verdict = isJudged && isKnown && value !== base ? value < base ? ' good' : ' bad' : '';
      add(line, 'td', {class: 'number' + verdict}, isKnown ? changeText(value, base) : '-');
    });
  }
}
