"use strict";

// Numbers as people read them, as the tables of the page have them.
const digits = (value, places = 4) => {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude >= 15 || magnitude < -6) return value.toExponential(places - 1);
  const behind = Math.min(9, Math.max(0, places - 1 - magnitude));
  const text = value.toFixed(behind);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text.replace(/\B(?=(\d{3})+$)/g, ",");
};

const PREFIXES = {
  ns: [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]],
  bytes: [[1, "B"], [1024, "KiB"], [1048576, "MiB"], [1073741824, "GiB"]],
  bytes_per_s: [[1, "B/s"], [1e3, "kB/s"], [1e6, "MB/s"], [1e9, "GB/s"]],
  per_s: [[1, "/s"], [1e3, "k/s"], [1e6, "M/s"], [1e9, "G/s"]],
  joules: [[1e-9, "nJ"], [1e-6, "µJ"], [1e-3, "mJ"], [1, "J"], [1e3, "kJ"]],
  watts: [[1e-3, "mW"], [1, "W"]],
};

const shown = (value, unit, places = 4) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (unit === "share") return `${digits(100 * value, places)} %`;
  if (unit === "seconds") return `${digits(value, places)} s`;
  const prefixes = PREFIXES[unit];
  if (!prefixes) return digits(value, places);
  const one = prefixes.find(([scale]) => scale === 1);
  if (value === 0) return `0 ${one[1]}`;
  const fits = prefixes.filter(([scale]) => Math.abs(value) >= scale * 0.9995);
  const [scale, name] = fits.length ? fits[fits.length - 1] : prefixes[0];
  return `${digits(value / scale, places)} ${name}`;
};

// A share of requests that were slower as the percentile that it stands for: 0.001 is 99.9 %.
const percentile = (slower) => {
  if (slower >= 1) return "0 %";
  const places = Math.max(0, Math.round(-Math.log10(slower)) - 2);
  return `${(100 * (1 - slower)).toFixed(places)} %`;
};

