/**
 * Line charts and bars as inline SVG. They need no script and take the colors of the page. The
 * values of a chart stand beside it in words and after all charts in a table. With `/charts.js`,
 * uPlot draws the same charts.
 */
import { attribute, type Html, html, nothing } from "./template.ts"
import { table, timeAt } from "./parts.ts"

/** The units of values. */
export type ChartUnit = "bytes" | "count" | "ms" | "per-second" | "percent"

/** A line; a value is undefined where there was nothing to measure. */
export interface ChartLine {
  readonly name: string
  readonly values: ReadonlyArray<number | undefined>
}

export interface LineChart {
  readonly title: string
  readonly unit: ChartUnit
  /** One or two: the last one is the main line. All have a value for each sample. */
  readonly lines: ReadonlyArray<ChartLine>
  /** The least top of the chart, so that small values look small. */
  readonly topMin: number
}

/** When the samples were taken, ascending, and the time that the charts show. */
export interface ChartTimes {
  readonly samplesMs: ReadonlyArray<number>
  readonly fromMs: number
  readonly untilMs: number
}

/**
 * A value with its unit. `/charts.js` has a copy of this function by its source, so it refers to
 * nothing outside.
 */
export const valueText = (unit: ChartUnit, value: number): string => {
  switch (unit) {
    case "bytes":
      return `${Math.round(value / 1_048_576).toLocaleString("en")} MiB`
    case "count":
      return value.toLocaleString("en")
    case "ms":
      return value >= 1_000
        ? `${(value / 1_000).toFixed(1)} s`
        : `${value.toFixed(value > 0 && value < 10 ? 1 : 0)} ms`
    case "per-second":
      return value > 0 && value < 10
        ? `${value.toFixed(1)}/s`
        : `${Math.round(value).toLocaleString("en")}/s`
    case "percent":
      return `${Math.round(value)} %`
  }
}

const widthUnits = 400

const heightUnits = 80

/** Room for the width of a line at the top. */
const topGap = 2

const rounded = (value: number): number => Math.round(value * 10) / 10

const present = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number> =>
  values.filter((value) => value !== undefined)

/** Tops of axes: half of each has few digits, too. */
const roundTops = [1, 2, 3, 4, 5, 6, 8, 10]

/** The least round value that is not below `value`; of bytes, one of whole MiB. */
const topOf = (unit: ChartUnit, value: number): number => {
  const each = unit === "bytes" ? 1_048_576 : 1
  const size = each * 10 ** Math.floor(Math.log10(value / each))
  return size * (roundTops.find((top) => top * size >= value) ?? 10)
}

/** The axis of a chart: nothing, half of the top, and the top. */
const axisOf = (unit: ChartUnit, top: number): ReadonlyArray<readonly [string, number]> =>
  [top, top / 2, 0].map((value) => [valueText(unit, value), value] as const)

const heightOf = (value: number, top: number): number =>
  rounded(heightUnits - (heightUnits - topGap) * value / top)

/** The path of a line, interrupted where values are missing. A single value is a dot. */
const pathOf = (
  values: ReadonlyArray<number | undefined>,
  { fromMs, samplesMs, untilMs }: ChartTimes,
  top: number
): string => {
  let isDown = false
  const steps = values.map((value, at) => {
    if (value === undefined) {
      isDown = false
      return ""
    }
    const part = ((samplesMs[at] ?? fromMs) - fromMs) / (untilMs - fromMs)
    const x = rounded(Math.min(1, Math.max(0, part)) * widthUnits)
    const y = heightOf(value, top)
    const step = isDown ? `L${x} ${y}` : `M${x} ${y}h0`
    isDown = true
    return step
  })
  return steps.join("")
}

/** The last value of a line in words. */
const nowOf = ({ values }: ChartLine, unit: ChartUnit): string => {
  const last = values.at(-1)
  return last === undefined ? "–" : valueText(unit, last)
}

/**
 * How much is used of a whole, in percent and as a bar. The label of the bar is `about` with the
 * same percent. Of a whole of nothing, all is used.
 */
export const share = (about: string, used: number, whole: number): Html => {
  const part = whole > 0 ? used / whole : 1
  const percent = `${Math.round(100 * part)} %`
  const filled = rounded(Math.min(1, Math.max(0, part)) * widthUnits)
  return html`${percent}<svg class="share" role="img" aria-label="${about}: ${percent}"
viewBox="0 0 ${widthUnits} 1" preserveAspectRatio="none"><path class="line minor"
d="M0 .5h${widthUnits}" vector-effect="non-scaling-stroke"/>${
    filled > 0 && html`<path class="line"
d="M0 .5h${filled}" vector-effect="non-scaling-stroke"/>`
  }</svg>`
}

const minuteMs = 60_000

/** The axis of time, which is the same in every time zone. */
const timeAxis = ({ fromMs, untilMs }: ChartTimes): Html => {
  const minutes = Math.round((untilMs - fromMs) / minuteMs)
  return html`<p class="times" aria-hidden="true"><span>${minutes} min ago</span>
<span>${minutes / 2} min ago</span><span>now</span></p>`
}

const topOfChart = ({ lines, topMin, unit }: LineChart): { greatest: number; top: number } => {
  const greatest = Math.max(0, ...lines.flatMap(({ values }) => present(values)))
  return { greatest, top: topOf(unit, Math.max(topMin, greatest)) }
}

/** A chart with its title, and its values in words. */
const lineChart = (times: ChartTimes) => (chart: LineChart): Html => {
  const { lines, title, unit } = chart
  const { greatest, top } = topOfChart(chart)
  const words = lines.map((line) =>
    line.name === "" ? nowOf(line, unit) : `${line.name} ${nowOf(line, unit)}`
  ).join(", ")
  const axis = axisOf(unit, top)
  const about = `${title}: now ${words}; at most ${valueText(unit, greatest)}`
  return html`<figure class="chart"><figcaption><b>${title}</b> <span>${words}</span>
<span class="quiet">at most ${valueText(unit, greatest)}</span></figcaption>
<div class="plot"><p class="axis" aria-hidden="true">${
    axis.map(([text]) => html`<span>${text}</span>`)
  }</p><svg role="img" aria-label="${about}" viewBox="0 0 ${widthUnits} ${heightUnits}"
preserveAspectRatio="none">${
    axis.map(([, value]) =>
      html`<path class="grid" d="M0 ${heightOf(value, top)}h${widthUnits}"
vector-effect="non-scaling-stroke"/>`
    )
  }${
    lines.map(({ values }, at) => {
      const path = pathOf(values, times, top)
      const isMain = at === lines.length - 1
      return path === "" ?
        nothing :
        html`<path class="${isMain ? "line" : "line minor"}" d="${path}"
vector-effect="non-scaling-stroke"/>`
    })
  }</svg></div>${timeAxis(times)}</figure>
`
}

const secondMs = 1_000

/** What `/charts.js` reads: times in seconds since the epoch, null for a missing value. */
const dataOf = ({ fromMs, samplesMs, untilMs }: ChartTimes, drawn: ReadonlyArray<LineChart>) => ({
  fromS: fromMs / secondMs,
  untilS: untilMs / secondMs,
  timesS: samplesMs.map((atMs) => atMs / secondMs),
  charts: drawn.map((chart) => ({
    title: chart.title,
    unit: chart.unit,
    top: topOfChart(chart).top,
    lines: chart.lines
  }))
})

/** Rows of the table, at most. */
const rowsMax = 13

/** Samples at even distances, the newest first, with all values of each. */
const valueTable = ({ samplesMs }: ChartTimes, drawn: ReadonlyArray<LineChart>): Html => {
  const step = Math.max(1, Math.ceil((samplesMs.length - 1) / (rowsMax - 1)))
  const last = samplesMs.length - 1
  const rows = samplesMs.map((atMs, at) => ({ at, atMs })).filter(({ at }) =>
    (last - at) % step === 0
  )
  const columns = drawn.flatMap(({ lines, title, unit }) =>
    lines.map(({ name, values }) => ({
      unit,
      values,
      heading: { number: name === "" ? title : `${title}, ${name}` }
    }))
  )
  return html`<details id="chart-values"><summary>Values as a table</summary>
${
    table(
      "Values of the charts",
      ["Time", ...columns.map(({ heading }) => heading)],
      rows.toReversed().map(({ at, atMs }) =>
        html`<tr><th scope="row">${timeAt(atMs)}</th>${
          columns.map(({ unit, values }) => {
            const value = values[at]
            return html`<td class="num">${value === undefined ? "–" : valueText(unit, value)}</td>`
          })
        }</tr>
`
      ),
      "figures"
    )
  }</details>
`
}

/** Charts side by side, as many as fit, and their values in a table. */
export const charts = (times: ChartTimes, drawn: ReadonlyArray<LineChart>): Html =>
  html`<div class="charts"${attribute("data-charts", JSON.stringify(dataOf(times, drawn)))}>
${drawn.map(lineChart(times))}</div>
${valueTable(times, drawn)}`
