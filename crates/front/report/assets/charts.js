// Converts the chart data of a page to ECharts options.
const FONT = "system-ui, sans-serif";

const common = (ink) => ({
  animation: false,
  backgroundColor: "transparent",
  color: theme.colours(),
  textStyle: { fontFamily: FONT, color: ink.text },
  tooltip: {
    confine: true, backgroundColor: ink.ground, borderColor: ink.line, textStyle: { color: ink.text, fontSize: 12 },
    // Tooltips are built from text only: names are untrusted.
    renderMode: "richText",
  },
});

const axis = (of, ink, more = {}) => ({
  type: of.log ? "log" : "value",
  name: of.name,
  nameLocation: "middle",
  nameTextStyle: { color: ink.soft },
  axisLabel: { color: ink.soft, hideOverlap: true, formatter: (value) => shown(value, of.unit, 3) },
  axisLine: { show: true, lineStyle: { color: ink.line } },
  splitLine: { lineStyle: { color: ink.line, type: of.log ? "dashed" : "solid" } },
  minorSplitLine: { show: false },
  ...more,
});

const across = (of, ink, more = {}) => axis(of, ink, { nameGap: 28, ...more });
const upward = (of, ink, more = {}) => axis(of, ink, { nameGap: 58, nameRotate: 90, ...more });

const legend = (names, ink) => ({
  type: "plain", top: 0, left: 0, right: 0, itemGap: 12, itemWidth: 14, itemHeight: 10, textStyle: { color: ink.text, fontSize: 12 }, data: names,
});

// Height of a legend with this many names in a chart of this width.
const legendHeight = (names, width) => {
  let [rows, used] = [1, 0];
  for (const name of names) {
    const wide = 34 + 6.6 * name.length;
    if (used > 0 && used + wide > width) [rows, used] = [rows + 1, 0];
    used += wide;
  }
  return 24 * rows + 6;
};

// Bounds of a logarithmic axis: whole powers of ten around the values.
const decades = (values) => {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return {};
  const low = 10 ** Math.floor(Math.log10(Math.min(...positive)) + 1e-9);
  const high = 10 ** Math.ceil(Math.log10(Math.max(...positive)) - 1e-9);
  return { min: low, max: high > low ? high : low * 10 };
};

const DASHES = ["solid", [7, 3], [2, 2], [9, 3, 2, 3], [4, 4]];

const lineChart = (chart, ink, width) => {
  const names = chart.curves.map((curve) => curve.name);
  const all = (key) => chart.curves.flatMap((curve) => curve[key].filter((value) => value !== null));
  const reduced = (key) => decades(all(key));
  const top = names.length > 1 ? legendHeight(names, width) : 12;
  const tail = chart.y.tail;
  const y = tail ? { ...chart.y, unit: "tail" } : chart.y;
  const yAxis = upward(y, ink, {
    ...(chart.y.log ? reduced("y") : { scale: chart.y.scale ?? false }), ...(tail ? { inverse: true, max: 1 } : {}),
  });
  if (tail) yAxis.axisLabel.formatter = percentile;
  const series = chart.curves.flatMap((curve, at) => {
    const colour = theme.colours()[at % theme.colours().length];
    const line = {
      type: curve.scatter ? "scatter" : "line",
      name: curve.name,
      color: colour,
      data: curve.x.map((x, n) => [x, curve.y[n]]),
      step: curve.steps ? "end" : false,
      symbol: curve.points || curve.scatter ? "circle" : "none",
      symbolSize: curve.scatter ? 8 : 6,
      lineStyle: { width: 1.8, type: DASHES[Math.floor(at / theme.colours().length) % DASHES.length] },
      connectNulls: false,
    };
    if (curve.marks?.length) {
      line.markLine = {
        symbol: "none", silent: true, lineStyle: { color: colour, type: "dashed" }, label: { color: ink.text, formatter: "{b}" },
        data: curve.marks.map((mark) => ({ name: mark.name, xAxis: mark.x })),
      };
    }
    return [line, ...intervals(curve, colour)];
  });
  return {
    ...common(ink),
    tooltip: {
      ...common(ink).tooltip, trigger: "axis", axisPointer: { type: "line", lineStyle: { color: ink.soft } },
      valueFormatter: (value) => (tail ? percentile(value) : shown(value, chart.y.unit)),
    },
    legend: names.length > 1 ? legend(names, ink) : undefined,
    grid: { left: 84, right: 22, top, bottom: 46 },
    xAxis: across(chart.x, ink, chart.x.labels ? { type: "category", data: chart.x.labels, axisLabel: { color: ink.soft, hideOverlap: true } } : chart.x.log ? reduced("x") : { min: "dataMin", max: "dataMax" }),
    yAxis,
    series,
  };
};

// Confidence intervals, as upright bars of thin lines.
const intervals = (curve, colour) =>
  (curve.half ?? []).flatMap((half, n) => (half === null || half === undefined || curve.y[n] === null ? [] : [{
    type: "line", silent: true, symbol: "rect", symbolSize: [9, 1.5], color: colour, lineStyle: { width: 1.2, color: colour }, tooltip: { show: false },
    data: [[curve.x[n], curve.y[n] - half], [curve.x[n], curve.y[n] + half]],
  }]));

const barChart = (chart, ink, width) => {
  const names = chart.parts.filter((part) => !part.hidden).map((part) => part.name);
  const top = names.length > 1 ? legendHeight(names, width) : 8;
  const longest = Math.max(...chart.categories.map((name) => name.length));
  const clip = width < 560 ? 22 : 40;
  const series = chart.parts.map((part) => ({
    type: "bar", stack: chart.apart ? undefined : "all", barGap: chart.apart ? "-100%" : undefined, name: part.name, data: part.values, barMaxWidth: 20,
    itemStyle: part.hidden ? { color: "transparent" } : { borderColor: ink.ground, borderWidth: 0.5 },
    silent: part.hidden, tooltip: { show: !part.hidden },
  }));
  let at = 0;
  for (const one of series) {
    if (one.silent) continue;
    const turn = Math.floor(at / theme.colours().length);
    one.color = theme.colours()[at++ % theme.colours().length];
    // Repeated colours are paler.
    if (turn > 0) one.itemStyle = { ...one.itemStyle, opacity: 0.55 };
  }
  return {
    ...common(ink),
    tooltip: { ...common(ink).tooltip, trigger: "item", valueFormatter: (value) => shown(value, chart.unit) },
    legend: names.length > 1 ? legend(names, ink) : undefined,
    grid: { left: 24 + 6.4 * Math.min(longest, clip), right: 30, top, bottom: 30 },
    xAxis: axis({ name: "", unit: chart.unit, log: false }, ink, chart.unit === "share" && !chart.apart ? { max: 1 } : {}),
    yAxis: {
      type: "category", inverse: true, data: chart.categories, axisLine: { onZero: !chart.apart, lineStyle: { color: ink.line } }, axisTick: { show: false },
      axisLabel: { color: ink.text, formatter: (name) => (name.length > clip ? `${name.slice(0, clip - 1)}…` : name) },
    },
    series,
  };
};

const columnChart = (chart, ink) => ({
  ...common(ink),
  tooltip: { ...common(ink).tooltip, trigger: "axis", valueFormatter: (value) => shown(value, chart.unit) },
  grid: { left: 70, right: 22, top: 12, bottom: 46 },
  xAxis: {
    type: "category", data: chart.categories, name: chart.name, nameLocation: "middle", nameGap: 28, nameTextStyle: { color: ink.soft },
    axisLabel: { color: ink.soft, hideOverlap: true }, axisLine: { lineStyle: { color: ink.line } },
  },
  yAxis: upward({ name: chart.parts[0].name, unit: chart.unit, log: false }, ink, { nameGap: 52 }),
  series: chart.parts.map((part) => ({ type: "bar", name: part.name, data: part.values, barCategoryGap: "12%" })),
});

const heatChart = (chart, ink, width) => {
  const values = chart.cells.map((cell) => cell[2]);
  const most = Math.max(...values);
  const least = chart.unit === "share" ? 0 : Math.min(...values);
  const few = chart.cells.length <= 140 && (width - 160) / chart.x.labels.length > 46;
  // Labels on the far half of the scale use the colour of its near end.
  const over = (value) => (most > least && (value - least) / (most - least) > 0.5 ? ink.onTo : ink.text);
  const side = (of, more) => ({
    type: "category", data: of.labels, name: of.name, nameLocation: "middle", nameTextStyle: { color: ink.soft },
    axisLabel: { color: ink.soft, hideOverlap: true }, axisLine: { lineStyle: { color: ink.line } }, splitArea: { show: false }, ...more,
  });
  return {
    ...common(ink),
    tooltip: {
      ...common(ink).tooltip,
      formatter: ({ value }) => `${chart.x.name} ${chart.x.labels[value[0]]}, ${chart.y.name} ${chart.y.labels[value[1]]}: ${shown(value[2], chart.unit)}`,
    },
    grid: { left: 24 + 7 * Math.max(4, ...chart.y.labels.map((label) => Math.min(24, label.length))), right: 120, top: 10, bottom: 46 },
    xAxis: side(chart.x, { nameGap: 28 }),
    yAxis: side(chart.y, { nameGap: 10 + 7 * Math.max(4, ...chart.y.labels.map((label) => Math.min(24, label.length))), inverse: true }),
    visualMap: {
      type: "continuous", min: least, max: most > least ? most : least + 1, orient: "vertical", right: 4, top: "middle", itemHeight: 110, calculable: false,
      precision: 6, text: [shown(most, chart.unit), shown(least, chart.unit)], textStyle: { color: ink.text }, inRange: { color: [ink.from, ink.to] },
    },
    series: [{
      type: "heatmap", data: few ? chart.cells.map((value) => ({ value, label: { color: over(value[2]) } })) : chart.cells, itemStyle: { borderColor: ink.ground, borderWidth: 1 },
      label: { show: few, fontSize: 11, formatter: ({ value }) => shown(value[2], chart.unit, 3) },
    }],
  };
};

const CHARTS = { lines: lineChart, bars: barChart, columns: columnChart, heat: heatChart };

// Draws or redraws a chart in an element.
const draw = (element, chart) => {
  element.echarts?.dispose();
  const width = theme.printing ? 660 : element.clientWidth || 660;
  const instance = echarts.init(element, null, { renderer: "svg", width, height: element.clientHeight || 300 });
  instance.setOption(CHARTS[chart.kind](chart, theme.ink(), width));
  element.echarts = instance;
  element.drawn = chart;
};

