/** The script of charts. Pages show their charts as SVG without it. */
import { valueText } from "../chart.ts"
import { uplotLicense, uplotScript, uplotStyle } from "./uplot.ts"

export const chartsScriptPath = "/charts.js"

/**
 * `/charts.js`: draws the charts of a page (`charts`) by uPlot, with clock times and the values
 * under the pointer, and draws them again when `/live.js` has replaced their data. The drawn charts
 * stand before the live part, so that the pointer and the focus stay where they are. The arrow keys
 * show the values of another time. Colors are those of the stylesheet (`.drawn`): a canvas does not
 * know custom properties. A style sheet made by a script needs no exception of the policy.
 */
export const chartsScript = `/*!
${uplotLicense}*/
${uplotScript}
"use strict"
{
  const valueText = ${String(valueText)}
  const heightPx = 128
  const syncKey = "charts"
  const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" })
  const exact = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(${JSON.stringify(uplotStyle)})
  document.adoptedStyleSheets.push(sheet)
  const drawn = document.createElement("div")
  drawn.className = "charts drawn"
  drawn.tabIndex = 0
  drawn.setAttribute("role", "group")
  drawn.setAttribute("aria-label", "Charts: the arrow keys show the values of another time")
  const color = (property) => () => getComputedStyle(drawn)[property]
  const font = "12px " + getComputedStyle(document.body).fontFamily
  let data
  let figures = []
  const wordsAt = ({ lines, unit }, at) =>
    lines.map(({ name, values }) => {
      const value = values[at] ?? null
      return (name === "" ? "" : name + " ") + (value === null ? "\\u2013" : valueText(unit, value))
    }).join(", ")
  const showAt = ({ caption }, chart, at) => {
    const time = at === null ? "" : exact.format(data.timesS[at] * 1_000) + ": "
    caption.textContent = time + wordsAt(chart, at ?? data.timesS.length - 1)
  }
  const tableOf = ({ lines }) =>
    [data.timesS, ...lines.map(({ values }) => values.map((value) => value ?? null))]
  const optionsOf = (at, figure) => {
    const chart = () => data.charts[at]
    const axis = {
      stroke: color("fill"), font,
      grid: { stroke: color("stopColor"), width: 1 }, ticks: { show: false }
    }
    const isMain = (line) => line === chart().lines.length - 1
    return {
      width: figure.plot.clientWidth,
      height: heightPx,
      padding: [8, 28, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: syncKey } },
      scales: {
        x: { range: () => [data.fromS, data.untilS] },
        y: { range: () => [0, chart().top] }
      },
      series: [{}, ...chart().lines.map((_, line) => ({
        stroke: color(isMain(line) ? "stroke" : "fill"), width: isMain(line) ? 1.75 : 1.25
      }))],
      axes: [
        { ...axis, size: 24, gap: 6, space: 70,
          values: (_, times) => times.map((atS) => clock.format(atS * 1_000)) },
        { ...axis, size: 66, gap: 6,
          splits: () => [0, chart().top / 2, chart().top],
          values: (_, values) => values.map((value) => valueText(chart().unit, value)) }
      ],
      hooks: { setCursor: [({ cursor }) => showAt(figure, chart(), cursor.idx ?? null)] }
    }
  }
  const figureOf = () => {
    const root = document.createElement("figure")
    root.className = "chart"
    const plot = document.createElement("div")
    plot.className = "plot"
    plot.setAttribute("role", "img")
    root.append(document.createElement("figcaption"), plot)
    drawn.append(root)
    return { root, plot }
  }
  // The title and the words of the chart that the service has drawn.
  const copyWords = (figure, from) => {
    const words = from.querySelector("figcaption").cloneNode(true)
    figure.root.firstChild.replaceWith(words)
    figure.caption = words.querySelector("span")
    figure.plot.setAttribute("aria-label", from.querySelector("svg").ariaLabel)
  }
  const observer = new ResizeObserver(() => {
    for (const { chart, plot } of figures) {
      if (chart.width !== plot.clientWidth) {
        chart.setSize({ width: plot.clientWidth, height: heightPx })
      }
    }
  })
  const draw = (source) => {
    data = JSON.parse(source.dataset.charts)
    if (!drawn.isConnected) source.parentElement.before(drawn)
    const isFirst = figures.length === 0
    if (isFirst) figures = data.charts.map(figureOf)
    figures.forEach((figure, at) => {
      copyWords(figure, source.children[at])
      const values = tableOf(data.charts[at])
      if (isFirst) figure.chart = new uPlot(optionsOf(at, figure), values, figure.plot)
      else figure.chart.setData(values)
      showAt(figure, data.charts[at], figure.chart.cursor.idx ?? null)
    })
    if (isFirst) observer.observe(drawn)
  }
  const parts = [...document.querySelectorAll("[data-live]")]
  const drawIn = () => {
    const source = document.querySelector("[data-charts]")
    if (source !== null) draw(source)
  }
  const changes = new MutationObserver(drawIn)
  for (const part of parts) changes.observe(part, { childList: true })
  drawIn()
  const repaint = () => {
    for (const { chart } of figures) chart.redraw(false)
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint)
  new MutationObserver(repaint)
    .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] })
  drawn.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return
    const last = data.timesS.length - 1
    const at = figures[0].chart.cursor.idx ?? null
    const next = {
      ArrowLeft: at === null ? last : Math.max(0, at - 1),
      ArrowRight: at === null ? last : Math.min(last, at + 1),
      Home: 0, End: last, Escape: -1
    }[event.key]
    if (next === undefined) return
    event.preventDefault()
    for (const { chart } of figures) {
      const left = next < 0 ? -10 : chart.valToPos(data.timesS[next], "x")
      chart.setCursor({ left, top: next < 0 ? -10 : 1 })
    }
  })
}
`
