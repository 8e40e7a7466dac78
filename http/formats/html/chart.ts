/**
 * Line charts and bars as inline SVG. They need no script and take the colors of the page. The last
 * and the greatest value of a chart, and the percent of a bar, stand beside it in words.
 */
import { type Html, html, nothing } from "./template.ts"

/** A line; a value is undefined where there was nothing to measure. */
export interface ChartLine {
  readonly name: string
  readonly values: ReadonlyArray<number | undefined>
}

export interface LineChart {
  readonly title: string
  /** The text of a value, with its unit. */
  readonly text: (value: number) => string
  /** One or two: the last one is the main line. All have a value for each of `places`. */
  readonly lines: ReadonlyArray<ChartLine>
  /** Where each value stands from left to right, 0 to 1, ascending. */
  readonly places: ReadonlyArray<number>
  /** The least top of the chart, so that small values look small. */
  readonly topMin: number
}

const widthUnits = 400

const heightUnits = 80

/** Room for the width of a line at the top. */
const topGap = 2

const rounded = (value: number): number => Math.round(value * 10) / 10

/** The path of a line, interrupted where values are missing. A single value is a dot. */
const pathOf = (
  values: ReadonlyArray<number | undefined>,
  places: ReadonlyArray<number>,
  top: number
): string => {
  let isDown = false
  const steps = values.map((value, at) => {
    if (value === undefined) {
      isDown = false
      return ""
    }
    const x = rounded((places[at] ?? 0) * widthUnits)
    const y = rounded(heightUnits - (heightUnits - topGap) * value / top)
    const step = isDown ? `L${x} ${y}` : `M${x} ${y}h0`
    isDown = true
    return step
  })
  return steps.join("")
}

const present = (values: ReadonlyArray<number | undefined>): ReadonlyArray<number> =>
  values.filter((value) => value !== undefined)

/** The last value of a line in words. */
const nowOf = ({ values }: ChartLine, text: LineChart["text"]): string => {
  const last = values.at(-1)
  return last === undefined ? "–" : text(last)
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

/** A chart with its title, and its values in words. */
export const lineChart = ({ lines, places, text, title, topMin }: LineChart): Html => {
  const greatest = Math.max(0, ...lines.flatMap(({ values }) => present(values)))
  const top = Math.max(topMin, greatest)
  const words = lines.map((line) =>
    line.name === "" ? nowOf(line, text) : `${line.name} ${nowOf(line, text)}`
  ).join(", ")
  const about = `${title}: now ${words}; at most ${text(greatest)}`
  return html`<figure class="chart"><figcaption><b>${title}</b> ${words}
<span class="quiet">at most ${text(greatest)}</span></figcaption>
<svg role="img" aria-label="${about}" viewBox="0 0 ${widthUnits} ${heightUnits}"
preserveAspectRatio="none">${
    lines.map(({ values }, at) => {
      const path = pathOf(values, places, top)
      const isMain = at === lines.length - 1
      return path === "" ?
        nothing :
        html`<path class="${isMain ? "line" : "line minor"}" d="${path}"
vector-effect="non-scaling-stroke"/>`
    })
  }</svg></figure>
`
}

/** Charts side by side, as many as fit. */
export const charts = (drawn: ReadonlyArray<LineChart>): Html =>
  html`<div class="charts">
${drawn.map(lineChart)}</div>
`
