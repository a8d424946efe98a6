"""Draws pages of the documents beside this file in headless Chromium, and looks at them.

`pages.py NANDSCAPE` compares; `pages.py NANDSCAPE --keep` writes the pictures that it would compare with; `--readme FOLDER` writes those of the
README. Nothing is fetched: Chromium must be there, otherwise everything is left out, with a note.
"""

import base64
import pathlib
import subprocess
import sys
import tempfile

import browser

HERE = pathlib.Path(__file__).resolve().parent
DATA, PICTURES = HERE / "data", HERE / "pictures"
# What is compared are the pictures of a page alone, one below the other, at half their size, without their words and legends: no font, and
# nothing that a font does to a page, moves anything in them. A picture is held against its own by blocks of 10 by 10 pixels, each as its mean
# brightness from 0 to 255. A curve 1.8 pixels wide makes a block darker by about 15, an area by 50 and more; two versions of Chromium, which
# smooth edges differently, by 3 at most. So a block counts where it differs by more than DIFFERS, and a picture is another one where more than
# SHARE of its blocks count: one curve of three that is not there is 1.9 %, bars or dies that are not are 6 % and more.
BLOCK, DIFFERS, SHARE = 10, 6, 0.01
# Height of what is compared, in pixels of the page.
HEIGHT = 4000

# Leaves nothing but the pictures of the page; where each begins and ends.
SHEET = """(() => {
  for (const element of document.querySelectorAll("div.chart"))
    element.echarts.setOption({ legend: { show: false }, visualMap: element.drawn.kind === "heat" ? { show: false } : undefined });
  const pictures = [...document.querySelectorAll("div.chart svg, svg.machine, table.rows svg.band")];
  const holders = pictures.map((picture) => {
    const holder = document.createElement("div");
    const high = Math.ceil(picture.getBoundingClientRect().height / 20) * 20;
    holder.style.cssText = `position: relative; height: ${high}px; overflow: hidden`;
    holder.append(picture);
    return holder;
  });
  const style = document.createElement("style");
  style.textContent = "body { margin: 0; padding: 0; max-width: none } text { fill: transparent !important; stroke: none !important }";
  document.body.replaceChildren(...holders);
  document.head.append(style);
  return holders.map((holder) => [holder.offsetTop, holder.offsetTop + holder.offsetHeight]);
})()"""

PAGES = {
    "run": (["run.json"], ["The machine", "What requests wait for", "Die utilisation"]),
    "pair": (["run.json", "other.json"], ["Metrics that differ"]),
    "many": (["run.json", "other.json", "gpu.json"], ["3 runs"]),
    "gpu": (["gpu.json"], ["Energy by component"]),
    "sweep": (["sweep.csv"], ["knee", "Pareto front"]),
    "rows": (["theory.json"], ["Reading a row"]),
}

COMPARE = """async (one, other, block, bounds, differs) => {
  const read = async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, image.width, image.height).data;
    const [columns, rows] = [Math.floor(image.width / block), Math.floor(image.height / block)];
    const sums = new Float64Array(columns * rows);
    for (let y = 0; y < rows * block; y++)
      for (let x = 0; x < columns * block; x++) {
        const at = 4 * (y * image.width + x);
        sums[Math.floor(y / block) * columns + Math.floor(x / block)] += 0.3 * pixels[at] + 0.59 * pixels[at + 1] + 0.11 * pixels[at + 2];
      }
    return { size: `${image.width} x ${image.height}`, columns, means: sums.map((sum) => sum / block / block) };
  };
  const [a, b] = [await read(one), await read(other)];
  // Of another size, another picture.
  if (a.size !== b.size) return [1];
  return bounds.map(([top, bottom]) => {
    const [from, to] = [top, bottom].map((edge) => a.columns * Math.floor(edge / 2 / block));
    const means = a.means.slice(from, to);
    return means.filter((mean, at) => Math.abs(mean - b.means[from + at]) > differs).length / Math.max(1, means.length);
  });
}"""

FAULTS = []


def check(holds, what):
    if not holds:
        FAULTS.append(what)
        print(f"  FAULT: {what}")


def text(png):
    return base64.b64encode(png).decode()


def compared(chromium, png, path, bounds):
    """The largest share of blocks of a picture that differ."""
    # A page's own policy lets no picture in.
    chromium.call("Page.navigate", {"url": "about:blank"})
    shares = chromium.run(f"({COMPARE})('{text(png)}', '{text(path.read_bytes())}', {BLOCK}, {bounds}, {DIFFERS})")
    return max(shares)


def look(chromium, name, url, said, keep):
    for scheme in ["light", "dark"]:
        chromium.open(url, scheme)
        where = f"{name}, {scheme}"
        check(chromium.complaints() == [], f"{where}: the console has {chromium.complaints()}")
        check(chromium.requests() == [url], f"{where}: it asked for {chromium.requests()}")
        content = chromium.run("document.body.innerText")
        for words in said:
            check(words in content, f"{where}: it does not say `{words}`")
        empty = "[...document.querySelectorAll('div.chart')].filter((one) => !one.querySelector('svg path')).length"
        check(chromium.run(empty) == 0, f"{where}: {chromium.run(empty)} pictures are empty")
        wide = "document.documentElement.scrollWidth > innerWidth"
        check(not chromium.run(wide), f"{where}: the page is wider than the window")
        bounds = [[top, bottom] for top, bottom in chromium.run(SHEET) if bottom <= HEIGHT]
        check(bounds != [], f"{where}: it has no picture")
        png = chromium.picture(bounds[-1][1])
        path = PICTURES / f"{name}-{scheme}.png"
        if keep:
            path.write_bytes(png)
            continue
        share = compared(chromium, png, path, bounds)
        print(f"  {where}: of {len(bounds)} pictures, {100 * share:.1f} % of the blocks of one differ at most")
        check(share <= SHARE, f"{where}: {100 * share:.1f} % of the blocks of a picture differ, more than {100 * SHARE:.0f} %")


def behaves(chromium, url, sweep):
    """What a reader can do with a page."""
    chromium.open(url)
    chromium.run("document.getElementById('scheme').click()")
    check(chromium.run("document.documentElement.dataset.theme") == "dark", "the button changes the colours")
    rows = "[...document.querySelectorAll('table.spec tbody tr')].filter((row) => !row.hidden).length"
    before = chromium.run(rows)
    find = "document.querySelector('input[data-filter=spec]')"
    chromium.run(f"{find}.value = 'geometry'; {find}.dispatchEvent(new Event('input'))")
    check(0 < chromium.run(rows) < before, "the spec can be searched")
    named = "[...document.querySelectorAll('[role=img], [role=region]')].every((one) => one.getAttribute('aria-label'))"
    check(chromium.run(named), "every picture has a name that is read out")
    heads = "[...document.querySelectorAll('table')].every((one) => one.caption && one.querySelector('th[scope=col]'))"
    check(chromium.run(heads), "every table has a caption and heads")
    pdf = base64.b64decode(chromium.call("Page.printToPDF", {})["data"])
    check(pdf.startswith(b"%PDF"), "it prints")
    check(chromium.complaints() == [], f"printing: the console has {chromium.complaints()}")
    # The knee of a made-up drive: throughput over latency is 1/1, 2/1.5, 2.5/4, the second is greatest.
    chromium.open(sweep)
    points = "[{throughput: 1, latency: 1}, {throughput: 2, latency: 1.5}, {throughput: 2.5, latency: 4}]"
    check(chromium.run(f"kneeOf({points})") == 1, "the knee is where throughput over latency is greatest")
    front = chromium.run("paretoOf([{x: 1, y: 1}, {x: 2, y: 3}, {x: 3, y: 2}, {x: 1, y: 3}], [-1, 1])")
    check(front == [3], "what is less to the right and more upwards is on the front")
    front = chromium.run("paretoOf([{x: 1, y: 1}, {x: 2, y: 3}, {x: 3, y: 2}, {x: 1, y: 1}], [-1, 1])")
    check(front == [0, 1, 3], "two that are equal are both on the front")
    same = "[['ns', 1650819.1], ['share', 0.51234], ['bytes', 4096], ['per_s', 15876.28], ['plain', 200000]].map(([unit, value]) => shown(value, unit)).join('; ')"
    check(chromium.run(same) == "1.651 ms; 51.23 %; 4 KiB; 15.88 k/s; 200,000", "numbers are shown as tables have them")
    select = "document.querySelector('[data-view=line] select')"
    chromium.run(f"{select}.value = '1'; {select}.dispatchEvent(new Event('change'))")
    title = chromium.run("document.querySelector('[data-view=line] figcaption b').textContent")
    check(title.startswith(chromium.run("JSON.parse(document.getElementById('sweep').textContent).metrics[1].name")), "another figure is drawn when it is chosen")


def readme(chromium, urls, folder):
    """Pictures of a part of a page each."""
    parts = [
        ("report-latency", "run", "light", "section:has(h2) figure", 0, 1),
        ("report-machine", "run", "dark", "figure:has(svg.machine)", 0, 2),
        ("report-sweep", "sweep", "light", "figure[data-view=knee]", 0, 1),
    ]
    for name, page, scheme, selector, first, count in parts:
        chromium.open(urls[page], scheme)
        box = chromium.run(
            f"(() => {{ const all = [...document.querySelectorAll('{selector}')].slice({first}, {first + count}); const boxes = all.map((one) => one.getBoundingClientRect());"
            " return {x: 0, y: boxes[0].top + scrollY - 8, width: innerWidth, height: boxes[boxes.length - 1].bottom - boxes[0].top + 16, scale: 1}; })()"
        )
        png = base64.b64decode(chromium.call("Page.captureScreenshot", {"format": "png", "clip": box, "captureBeyondViewport": True})["data"])
        (pathlib.Path(folder) / f"{name}.png").write_bytes(png)
        print(f"{name}.png: {len(png) // 1000} kB")


def main(nandscape, *options):
    path = browser.found()
    if not path:
        print("skipped: no Chromium is here (Debian has it as the package `chromium`)")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        urls = {}
        for name, (inputs, _) in PAGES.items():
            page = pathlib.Path(folder) / f"{name}.html"
            # From where the data lie: their names are in the pages.
            subprocess.run([nandscape, "report", *inputs, "-o", page], check=True, cwd=DATA, stderr=subprocess.DEVNULL)
            urls[name] = page.as_uri()
        chromium = browser.Browser(path)
        try:
            if "--readme" in options:
                readme(chromium, urls, options[options.index("--readme") + 1])
                return 0
            for name, (_, said) in PAGES.items():
                print(name)
                look(chromium, name, urls[name], said, "--keep" in options)
            behaves(chromium, urls["run"], urls["sweep"])
        finally:
            chromium.close()
    print(f"{len(PAGES)} pages, {len(FAULTS)} faults")
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
