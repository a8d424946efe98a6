// Colours that are told apart with any kind of sight, as far as a set of this size can be: the first eight after M. Okabe and K. Ito.
const COLOURS = {
  light: [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#5b5b5b", "#6f4fa0", "#b0b000", "#7fc97f", "#a6192e", "#004d66",
  ],
  dark: [
    "#4ba3e3", "#ff8a3c", "#2fc493", "#e79fc6", "#f5bd3d", "#8fd0f7", "#c9a565", "#a8a8a8", "#a98be0", "#d6d63a", "#a5e3a5", "#ef6a7c", "#5fb4c9",
  ],
};
const INK = {
  light: { text: "#1c1f23", soft: "#5c6570", line: "#d7dce1", ground: "#ffffff", from: "#eef4fa", to: "#08306b", onTo: "#ffffff" },
  dark: { text: "#e6e9ec", soft: "#9aa5b1", line: "#39424d", ground: "#14181d", from: "#1b2733", to: "#9ecbff", onTo: "#10161c" },
};

const theme = {
  // What the reader has chosen; otherwise what the browser says.
  chosen: null,
  printing: false,
  system: window.matchMedia("(prefers-color-scheme: dark)"),
  name() {
    if (this.printing) return "light";
    return this.chosen ?? (this.system.matches ? "dark" : "light");
  },
  ink() {
    return INK[this.name()];
  },
  colours() {
    return COLOURS[this.name()];
  },
};

