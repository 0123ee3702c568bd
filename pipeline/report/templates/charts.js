// Fills Bokeh's figures with the measure that is asked for, shows or hides strategies, and changes
// between the two scales. All of it is in the page; nothing is fetched.
(() => {
  if (typeof Bokeh === "undefined") return;
  const [data, items, signed] = [{}, {}, new Set()];
  for (const holder of document.querySelectorAll(".charts-data")) {
    const part = JSON.parse(holder.textContent);
    Object.assign(data, part.data);
    Object.assign(items, part.items);
    part.signed.forEach((name) => signed.add(name));
  }

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function paint(plot) {
    const [text, line] = [style("--fg"), style("--line")];
    plot.background_fill_color = plot.border_fill_color = style("--bg");
    plot.outline_line_color = null;
    for (const side of ["above", "below", "left", "right"]) {
      for (const axis of plot[side]) {
        axis.axis_label_text_color = axis.major_label_text_color = text;
        axis.axis_line_color = axis.major_tick_line_color = line;
        axis.minor_tick_line_color = null;
      }
    }
    for (const grid of plot.center) if ("grid_line_color" in grid) grid.grid_line_color = line;
  }

  function connect(section, doc) {
    const dataset = section.dataset.chart;
    const plots = ["linear", "log"].map((scale) => doc.get_model_by_name(`${scale}/${dataset}`));
    const [measure, log] = [section.querySelector(".measure"), section.querySelector(".log")];
    const boxes = [...section.querySelectorAll(".strategy")];

    function update() {
      const curves = data[dataset][measure.value];
      const negative = signed.has(measure.value);
      log.disabled = negative;
      const logarithmic = log.checked && !negative;
      for (const [strategy, { y, low, high }] of Object.entries(curves)) {
        const known = y.map((value) => (value === null ? NaN : value));
        // On a logarithmic scale a band that reaches below zero ends at a hundredth of the mean.
        const bottom = low.map((value, k) =>
          value === null ? NaN : logarithmic ? Math.max(value, known[k] / 100) : value);
        doc.get_model_by_name(`source/${dataset}/${strategy}`).data = {
          x: y.map((_, k) => k),
          y: known,
          low: bottom,
          high: high.map((value) => (value === null ? NaN : value)),
        };
      }
      const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
      plots.forEach((plot, k) => {
        plot.visible = (k === 1) === logarithmic;
        plot.left[0].axis_label = measure.selectedOptions[0].text;
        for (const renderer of plot.renderers) renderer.visible = shown.has(renderer.tags[0]);
      });
      section.dataset.shown = `${measure.value} ${logarithmic ? "log" : "linear"} ${[...shown].join(" ")}`;
    }

    for (const control of [measure, log, ...boxes]) control.addEventListener("change", update);
    plots.forEach(paint);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach(paint));
    update();
  }

  for (const section of document.querySelectorAll("[data-chart]")) {
    Bokeh.embed.embed_item(items[section.dataset.chart]).then((views) => {
      const view = Array.isArray(views) ? views[0] : [...views][0];
      connect(section, view.model.document);
    });
  }
})();
