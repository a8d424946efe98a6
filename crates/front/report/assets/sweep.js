// Charts of a sweep that the reader configures.

// Index of the point with the greatest throughput over latency.
const kneeOf = (points) => {
  let best = -1;
  points.forEach(({ throughput, latency }, at) => {
    const power = throughput / latency;
    if (latency > 0 && (best < 0 || power > points[best].throughput / points[best].latency)) best = at;
  });
  return best;
};

// Indices of the points that no other surpasses in one metric and equals in the other; signs: 1 more is better, -1 less is.
const paretoOf = (points, [signX, signY]) =>
  points.flatMap((one, at) => {
    const beaten = points.some((other) => {
      const [dx, dy] = [signX * (other.x - one.x), signY * (other.y - one.y)];
      return dx >= 0 && dy >= 0 && (dx > 0 || dy > 0);
    });
    return beaten ? [] : [at];
  });

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

const fillTable = (holder, caption, head, rows) => {
  const row = (cells, tag) => make("tr", {}, ...cells.map((cell, at) => {
    const element = make(tag === "th" || at === 0 ? "th" : "td", { textContent: cell });
    if (tag === "th") element.scope = "col";
    else if (at === 0) element.scope = "row";
    if (tag !== "th" && at > 0) element.className = "n";
    return element;
  }));
  const table = make("table", {}, make("caption", { textContent: caption }), make("thead", {}, row(head, "th")), make("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
  holder.replaceChildren(table);
};

class View {
  constructor(figure, sweep) {
    this.sweep = sweep;
    this.choices = {};
    this.caption = make("figcaption");
    this.controls = make("p", { className: "choices" });
    this.canvas = make("div", { className: "chart", tabIndex: 0 });
    this.canvas.style.height = "360px";
    this.canvas.setAttribute("role", "img");
    this.note = make("p", { className: "note" });
    this.scroll = make("div", { className: "scroll", tabIndex: 0 });
    this.summary = make("summary");
    figure.append(this.caption, this.controls, this.canvas, this.note, make("details", {}, this.summary, this.scroll));
  }

  choose(name, label, options, first, then) {
    const select = make("select", {}, ...options.map(([value, text]) => make("option", { value, textContent: text })));
    select.value = String(first);
    this.choices[name] = select;
    select.addEventListener("change", then ?? (() => this.draw()));
    this.controls.append(make("label", {}, `${label} `, select), " ");
  }

  at(name) {
    return Number(this.choices[name].value);
  }

  metricOptions() {
    return this.sweep.metrics.map((metric, at) => [at, metric.name]);
  }

  axisOptions(none) {
    const axes = this.sweep.axes.map((axis, at) => [at, axis.name]);
    return none ? [[-1, none], ...axes] : axes;
  }

  // Metrics whose names say what they are, or the first that says nothing else.
  guess(words, other = 0) {
    for (const word of words) {
      const found = this.sweep.metrics.findIndex((metric) => metric.name.includes(word));
      if (found >= 0) return found;
    }
    return Math.min(other, this.sweep.metrics.length - 1);
  }

  // Choices for the axes that a picture does not show: one of each one's values.
  fix(shownAxes) {
    const kept = this.fixed ?? {};
    this.fixed = {};
    this.others?.remove();
    this.others = make("span");
    this.sweep.axes.forEach((axis, at) => {
      if (shownAxes.includes(at)) return;
      const select = make("select", {}, ...axis.labels.map((text, value) => make("option", { value, textContent: text })));
      select.value = kept[at]?.value ?? "0";
      select.addEventListener("change", () => this.draw());
      this.fixed[at] = select;
      this.others.append(make("label", {}, `${axis.name} = `, select), " ");
    });
    this.controls.append(this.others);
  }

  cells() {
    return this.sweep.cells.filter((cell) => Object.entries(this.fixed ?? {}).every(([axis, select]) => cell.at[axis] === Number(select.value)));
  }

  where() {
    const said = Object.entries(this.fixed ?? {}).map(([axis, select]) => `${this.sweep.axes[axis].name} = ${this.sweep.axes[axis].labels[select.value]}`);
    return said.length ? ` at ${said.join(", ")}` : "";
  }

  end(title, about, chart, head, rows) {
    this.caption.replaceChildren(make("b", { textContent: title }), ` ${about}`);
    this.canvas.setAttribute("aria-label", `${title}. ${about} The table below has the numbers.`);
    this.summary.textContent = `Table: ${title}`;
    this.scroll.setAttribute("aria-label", title);
    this.scroll.setAttribute("role", "region");
    fillTable(this.scroll, title, head, rows);
    draw(this.canvas, chart);
  }

  // Cells by their place on an axis, or all together.
  split(cells, axis) {
    if (axis < 0) return [["", cells]];
    return this.sweep.axes[axis].labels.map((label, at) => [`${this.sweep.axes[axis].name} = ${label}`, cells.filter((cell) => cell.at[axis] === at)]);
  }
}

class LineView extends View {
  constructor(figure, sweep) {
    super(figure, sweep);
    const again = () => { this.fix([this.at("x"), this.at("by")]); this.draw(); };
    this.choose("metric", "Metric", this.metricOptions(), 0);
    this.choose("x", "over", this.axisOptions(), 0, again);
    this.choose("by", "one curve per", this.axisOptions("–"), sweep.axes.length > 1 ? 1 : -1, again);
    this.fix([this.at("x"), this.at("by")]);
    this.draw();
  }

  draw() {
    const metric = this.sweep.metrics[this.at("metric")];
    const x = this.sweep.axes[this.at("x")];
    const by = this.at("by") === this.at("x") ? -1 : this.at("by");
    const log = Boolean(x.numbers) && x.numbers.length > 2 && x.numbers[0] > 0 && x.numbers[x.numbers.length - 1] / x.numbers[0] >= 16;
    const rows = [];
    const curves = this.split(this.cells(), by).map(([name, cells]) => {
      const curve = { name: name || metric.name, x: [], y: [], half: [], points: true };
      for (const cell of [...cells].sort((one, other) => one.at[this.at("x")] - other.at[this.at("x")])) {
        const of = cell.of[this.at("metric")];
        const place = cell.at[this.at("x")];
        curve.x.push(x.numbers ? x.numbers[place] : place);
        curve.y.push(of ? of[0] : null);
        curve.half.push(of ? of[1] : null);
        rows.push([x.labels[place], ...(name ? [name] : []), of ? shown(of[0], metric.unit) : "–", of && of[1] !== null ? `± ${shown(of[1], metric.unit)}` : "–", of ? String(of[2]) : "0"]);
      }
      return curve;
    });
    const title = `${metric.name} over ${x.name}`;
    const chart = { kind: "lines", x: { name: x.name, unit: "plain", log, labels: x.numbers ? undefined : x.labels }, y: { name: metric.name, unit: metric.unit, log: false }, curves };
    this.end(title, `Means over seeds with their 95 % intervals${this.where()}.`, chart, [x.name, ...(by < 0 ? [] : ["curve"]), metric.name, "95 % interval", "seeds"], rows);
  }
}

class HeatView extends View {
  constructor(figure, sweep) {
    super(figure, sweep);
    if (sweep.axes.length < 2) {
      figure.replaceChildren(make("p", { className: "lacking", textContent: "Heat map: needs two axes; the sweep has one." }));
      return;
    }
    const again = () => { this.fix([this.at("x"), this.at("y")]); this.draw(); };
    this.choose("metric", "Metric", this.metricOptions(), 0);
    this.choose("x", "x axis", this.axisOptions(), 0, again);
    this.choose("y", "y axis", this.axisOptions(), 1, again);
    this.fix([0, 1]);
    this.draw();
  }

  draw() {
    const metric = this.sweep.metrics[this.at("metric")];
    const [x, y] = [this.sweep.axes[this.at("x")], this.sweep.axes[this.at("y")]];
    const found = this.cells().filter((cell) => cell.of[this.at("metric")]);
    const same = this.at("x") === this.at("y");
    this.note.textContent = same ? "The two axes are the same: choose two different ones." : "";
    const cells = same ? [] : found.map((cell) => [cell.at[this.at("x")], cell.at[this.at("y")], cell.of[this.at("metric")][0]]);
    const rows = cells.map(([a, b, value]) => [x.labels[a], y.labels[b], shown(value, metric.unit)]);
    const chart = { kind: "heat", unit: metric.unit, cells, x: { name: x.name, labels: x.labels }, y: { name: y.name, labels: y.labels } };
    this.end(`${metric.name} over ${x.name} and ${y.name}`, `Means over seeds${this.where()}.`, chart, [x.name, y.name, metric.name], rows);
  }
}

class KneeView extends View {
  constructor(figure, sweep) {
    super(figure, sweep);
    if (sweep.metrics.length < 2) {
      figure.replaceChildren(make("p", { className: "lacking", textContent: "Throughput against latency: needs two metrics; the sweep has one." }));
      return;
    }
    const depth = sweep.axes.findIndex((axis) => /depth|rate|jobs|threads/.test(axis.name));
    const numeric = sweep.axes.findIndex((axis) => axis.numbers);
    const along = depth >= 0 ? depth : Math.max(0, numeric);
    const again = () => { this.fix([this.at("along"), this.at("by")]); this.draw(); };
    this.choose("throughput", "Throughput", this.metricOptions(), this.guess(["iops", "throughput", "bandwidth", "ipc"]));
    this.choose("latency", "latency", this.metricOptions(), this.guess(["latency_ns.p99", "latency_ns", "_ns"], 1));
    this.choose("along", "along", this.axisOptions(), along, again);
    const other = sweep.axes.findIndex((_, at) => at !== along);
    this.choose("by", "one curve per", this.axisOptions("–"), other, again);
    this.fix([along, other]);
    this.draw();
  }

  draw() {
    const [throughput, latency] = [this.sweep.metrics[this.at("throughput")], this.sweep.metrics[this.at("latency")]];
    const along = this.sweep.axes[this.at("along")];
    const by = this.at("by") === this.at("along") ? -1 : this.at("by");
    const rows = [];
    const knees = [];
    const curves = this.split(this.cells(), by).map(([name, cells]) => {
      const points = cells
        .filter((cell) => cell.of[this.at("throughput")] && cell.of[this.at("latency")])
        .sort((one, other) => one.at[this.at("along")] - other.at[this.at("along")])
        .map((cell) => ({ throughput: cell.of[this.at("throughput")][0], latency: cell.of[this.at("latency")][0], label: along.labels[cell.at[this.at("along")]] }));
      const knee = kneeOf(points);
      points.forEach((point, at) => rows.push([...(name ? [name] : []), point.label, shown(point.throughput, throughput.unit), shown(point.latency, latency.unit), at === knee ? "knee" : ""]));
      if (knee >= 0) knees.push(`${name ? `${name}: ` : ""}${along.name} = ${points[knee].label}`);
      const marks = knee >= 0 ? [{ name: `knee, ${points[knee].label}`, x: points[knee].throughput }] : [];
      return { name: name || latency.name, x: points.map((point) => point.throughput), y: points.map((point) => point.latency), points: true, marks };
    });
    this.note.textContent = knees.length ? `Knees: ${knees.join("; ")}.` : "";
    const spread = curves.flatMap((curve) => curve.y).filter((value) => value > 0);
    const log = spread.length > 0 && Math.max(...spread) / Math.min(...spread) > 20;
    const chart = { kind: "lines", x: { name: throughput.name, unit: throughput.unit, log: false }, y: { name: latency.name, unit: latency.unit, log }, curves };
    this.end(`${latency.name} against ${throughput.name}`, `Along ${along.name}${this.where()}; a dashed line at each knee.`, chart, [...(by < 0 ? [] : ["curve"]), along.name, throughput.name, latency.name, ""], rows);
  }
}

class ParetoView extends View {
  constructor(figure, sweep) {
    super(figure, sweep);
    if (sweep.metrics.length < 2) {
      figure.replaceChildren(make("p", { className: "lacking", textContent: "Pareto front: needs two metrics; the sweep has one." }));
      return;
    }
    const better = [["1", "more is better"], ["-1", "less is better"]];
    const [x, y] = [this.guess(["latency", "_ns", "energy", "_j"], 0), this.guess(["iops", "throughput", "bandwidth", "ipc"], 1)];
    const sign = (at) => (/latency|_ns|energy|_j$|amplification|erases|gc_runs/.test(sweep.metrics[at].name) ? -1 : 1);
    const guessed = (name) => () => { this.choices[`${name}Better`].value = String(sign(this.at(name))); this.draw(); };
    this.choose("x", "x axis", this.metricOptions(), x, guessed("x"));
    this.choose("xBetter", "", better, sign(x));
    this.choose("y", "y axis", this.metricOptions(), y, guessed("y"));
    this.choose("yBetter", "", better, sign(y));
    this.draw();
  }

  draw() {
    const [x, y] = [this.sweep.metrics[this.at("x")], this.sweep.metrics[this.at("y")]];
    const name = (cell) => this.sweep.axes.map((axis, at) => `${axis.name} = ${axis.labels[cell.at[at]]}`).join(", ");
    const points = this.sweep.cells
      .filter((cell) => cell.of[this.at("x")] && cell.of[this.at("y")])
      .map((cell) => ({ x: cell.of[this.at("x")][0], y: cell.of[this.at("y")][0], name: name(cell) }));
    const front = new Set(paretoOf(points, [this.at("xBetter"), this.at("yBetter")]));
    const on = points.filter((_, at) => front.has(at)).sort((one, other) => one.x - other.x);
    const off = points.filter((_, at) => !front.has(at));
    const curve = (label, of, more) => ({ name: label, x: of.map((point) => point.x), y: of.map((point) => point.y), ...more });
    const curves = [curve("on the front", on, { points: true }), curve("others", off, { scatter: true })];
    const rows = [...on.map((point) => [point.name, shown(point.x, x.unit), shown(point.y, y.unit), "on the front"]), ...off.map((point) => [point.name, shown(point.x, x.unit), shown(point.y, y.unit), ""])];
    this.note.textContent = `${on.length} of ${points.length} points are on the front.`;
    const chart = { kind: "lines", x: { name: x.name, unit: x.unit, log: false }, y: { name: y.name, unit: y.unit, log: false, scale: true }, curves };
    this.end(`${y.name} and ${x.name}`, "Every combination of the axes, and the front of those not surpassed by any other.", chart, ["point", x.name, y.name, ""], rows);
  }
}

const VIEWS = { line: LineView, heat: HeatView, knee: KneeView, pareto: ParetoView };

const startSweep = () => {
  const data = document.getElementById("sweep");
  if (!data) return;
  const sweep = JSON.parse(data.textContent);
  for (const figure of document.querySelectorAll("figure[data-view]")) new VIEWS[figure.dataset.view](figure, sweep);
};

