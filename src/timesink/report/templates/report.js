// Draws the figures, sorts and searches the tables. Everything else of the page stands without it.
"use strict";

(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);

  // As many names of a legend beside each other as there is room for, right of the labels.
  const columnsOf = (spec, width) => {
    const colours = (spec.layer ?? [spec]).map((layer) => layer.encoding?.color?.scale?.domain ?? []);
    const longest = Math.max(0, ...colours.flat().map((name) => String(name).length));
    return Math.max(1, Math.floor(width / (7 * longest + 34)));
  };

  const draw = async (place) => {
    const narrow = place.clientWidth < 560;
    const spec = figures.specs[place.dataset.figure];
    const labels = narrow ? { labelLimit: Math.round(0.48 * place.clientWidth), labelFontSize: 10 } : { labelLimit: 260 };
    const config = { ...figures.config, axisY: { ...figures.config.axisY, ...labels } };
    if (narrow) {
      config.axisXQuantitative = { tickCount: 4 };
      config.legend = { ...config.legend, columns: columnsOf(spec, place.clientWidth - labels.labelLimit) };
    }
    try {
      await vegaEmbed(place, spec, {
        mode: "vega-lite",
        renderer: "svg",
        ast: true, // expressions are interpreted: the page allows no compiling of strings
        actions: false,
        defaultStyle: false,
        tooltip: { disableDefaultStyle: true },
        config,
      });
    } catch (error) {
      place.textContent = "This figure could not be drawn; its rows are below.";
      console.error(error);
    }
  };

  // One after the other, from the top, so that a page of forty can be read at once.
  const drawAll = async () => {
    const places = [...document.querySelectorAll("[data-figure]")];
    for (const place of places) {
      await draw(place);
      await new Promise((resolve) => setTimeout(resolve));
    }
    document.documentElement.dataset.drawn = String(places.length);
  };
  drawAll();

  // A body of a table is one line with what belongs to it: they move together.
  const valueOf = (body, column, kind) => {
    const cell = body.rows[0].cells[column];
    if (kind === "text") return cell.textContent.trim().toLowerCase();
    return cell.dataset.value === undefined || cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };

  const compare = (one, other) => {
    if (one === null || other === null) return (one === null) - (other === null);
    return typeof one === "string" ? one.localeCompare(other, undefined, { numeric: true }) : one - other;
  };

  const sortBy = (table, header) => {
    const kind = header.querySelector("button").dataset.kind;
    const before = header.getAttribute("aria-sort");
    const first = kind === "text" ? "ascending" : "descending";
    const second = kind === "text" ? "descending" : "ascending";
    const order = before === first ? second : first;
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies].map((body) => ({ body, key: valueOf(body, header.cellIndex, kind) }));
    // What was not measured stays last, whichever way.
    keyed.sort((a, b) => (a.key === null || b.key === null ? 1 : sign) * compare(a.key, b.key));
    table.append(...keyed.map((each) => each.body));
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => sortBy(table, button.closest("th")));
    }
  }

  for (const input of document.querySelectorAll("input[data-search]")) {
    const table = document.getElementById(input.dataset.search);
    const count = document.getElementById("search-count");
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const body of table.tBodies) {
        const text = body.textContent.toLowerCase();
        body.hidden = !words.every((word) => text.includes(word));
        shown += body.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${table.tBodies.length} lines` : `${shown} lines`;
    });
  }

  // A link to a run opens it.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
})();
