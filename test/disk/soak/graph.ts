/** The graph of a soak: panels below each other over the same time axis. */
import type { Sample } from "./checker.ts"

const WIDTH = 960
const PANEL = 150
const LEFT = 90
const RIGHT = 150
const TOP = 34
const GAP = 34
const COLOURS = ["#2563eb", "#dc2626"] as const
const MB = 1024 * 1024
const MINUTE_MS = 60_000

interface Line {
  readonly name: string
  readonly of: (sample: Sample) => number
}

interface Panel {
  readonly title: string
  readonly lines: ReadonlyArray<Line>
}

const panels = (everyMs: number): ReadonlyArray<Panel> => [
  {
    title: "operations a second",
    lines: [{ name: "answered", of: ({ operations }) => operations / (everyMs / 1000) }]
  },
  {
    title: "ms from when it was due to its answer",
    lines: [
      { name: "p50", of: ({ p50Ms }) => p50Ms },
      { name: "p99", of: ({ p99Ms }) => p99Ms }
    ]
  },
  { title: "memory, MB", lines: [{ name: "resident", of: ({ rssBytes }) => rssBytes / MB }] },
  { title: "file descriptors", lines: [{ name: "open", of: ({ files }) => files }] },
  {
    title: "disk, MB",
    lines: [
      { name: "live", of: ({ liveBytes }) => liveBytes / MB },
      { name: "on the disk", of: ({ diskBytes }) => diskBytes / MB }
    ]
  }
]

/** The next larger number of 1, 2, 5, 10 … */
const roundUp = (most: number): number => {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1e-9)))
  return power * ([1, 2, 5, 10].find((step) => step * power >= most) ?? 10)
}

const text = (x: number, y: number, what: string, more = ""): string =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${what}</text>`

const panelOf = (
  { lines, title }: Panel,
  samples: ReadonlyArray<Sample>,
  top: number,
  endMs: number
): string => {
  const width = WIDTH - LEFT - RIGHT
  const most = roundUp(Math.max(...samples.flatMap((one) => lines.map(({ of }) => of(one)))))
  const x = (atMs: number) => LEFT + width * atMs / endMs
  const y = (value: number) => top + PANEL * (1 - value / most)
  const grid = [0, 0.5, 1].map((part) => {
    const at = y(part * most).toFixed(1)
    return `<path class="grid" d="M${LEFT} ${at}h${width}"/>` +
      text(LEFT - 8, y(part * most) + 4, String(part * most), `text-anchor="end"`)
  })
  const drawn = lines.map(({ name, of }, n) => {
    const points = samples.map((one) => `${x(one.atMs).toFixed(1)},${y(of(one)).toFixed(1)}`)
    const color = COLOURS[n] ?? COLOURS[0]
    return `<polyline stroke="${color}" points="${points.join(" ")}"/>` +
      text(WIDTH - RIGHT + 12, top + 16 + 18 * n, name, `fill="${color}"`)
  })
  return text(LEFT, top - 8, title, `class="title"`) + grid.join("") + drawn.join("")
}

/** An SVG document; `everyMs` is the interval of the samples. */
export const graphOf = (
  samples: ReadonlyArray<Sample>,
  everyMs: number,
  title: string
): string => {
  const all = panels(everyMs)
  const endMs = Math.max(...samples.map(({ atMs }) => atMs), 1)
  const height = TOP + all.length * (PANEL + GAP) + 30
  const drawn = all.map((panel, n) =>
    panelOf(panel, samples, TOP + GAP / 2 + n * (PANEL + GAP) + 6, endMs)
  )
  const minutes = text(
    WIDTH - RIGHT,
    height - 12,
    `${(endMs / MINUTE_MS).toFixed(1)} minutes`,
    `text-anchor="end"`
  )
  const style = "text{font:13px system-ui,sans-serif}.title{font-weight:600}" +
    ".grid{stroke:#d4d4d4}polyline{fill:none;stroke-width:1.5}"
  const size = `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}"`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${title}">`,
    `<style>${style}</style><rect width="100%" height="100%" fill="#fff"/>`,
    text(LEFT, 22, title, `class="title"`),
    ...drawn,
    text(LEFT, height - 12, "0"),
    minutes,
    "</svg>\n"
  ].join("\n")
}
