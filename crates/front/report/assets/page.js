// Behaviour of the page: theme, search, charts.
const charts = () => document.querySelectorAll("div.chart");

const drawAll = () => {
  for (const element of charts()) {
    const data = element.nextElementSibling;
    if (element.drawn) draw(element, element.drawn);
    else if (data?.type === "application/json") draw(element, JSON.parse(data.textContent));
  }
};

const applyTheme = () => {
  document.documentElement.dataset.theme = theme.name();
  const button = document.getElementById("scheme");
  const dark = theme.name() === "dark";
  button.textContent = dark ? "Light" : "Dark";
  button.setAttribute("aria-label", dark ? "Use the light theme" : "Use the dark theme");
  drawAll();
};

const startFilters = () => {
  for (const input of document.querySelectorAll("input[data-filter]")) {
    const holder = input.closest("section");
    const rows = holder.querySelectorAll(`table.${input.dataset.filter} tbody tr`);
    const output = input.closest("p").querySelector("output");
    input.addEventListener("input", () => {
      if (holder.querySelector("details.long")) holder.querySelector("details.long").open = true;
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word));
        row.hidden = !fits;
        found += fits;
      }
      output.textContent = words.length ? `${found} of ${rows.length}` : "";
    });
  }
};

const startPrinting = () => {
  window.addEventListener("beforeprint", () => {
    theme.printing = true;
    applyTheme();
  });
  window.addEventListener("afterprint", () => {
    theme.printing = false;
    applyTheme();
  });
};

const start = () => {
  const button = document.getElementById("scheme");
  button.hidden = false;
  button.addEventListener("click", () => {
    theme.chosen = theme.name() === "dark" ? "light" : "dark";
    applyTheme();
  });
  theme.system.addEventListener("change", applyTheme);
  startSweep();
  applyTheme();
  startFilters();
  startPrinting();
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width && !theme.printing) {
      width = window.innerWidth;
      drawAll();
    }
  });
  document.documentElement.dataset.drawn = "yes";
};

start();
