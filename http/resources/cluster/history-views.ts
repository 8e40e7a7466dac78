/** The history of the answering node: its document and its page. */
import { charts, chartsScriptPath, type ChartUnit, emptyState, type Html, html, type LineChart,
  link, livePart, liveScriptPath, liveState, nothing, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime, listElement } from "../../formats/xml/index.ts"
import { eventText, type NodeHistory, type Sample, type SeenEvent } from "../../history/index.ts"
import { sampleMs, shownEventsMax, shownMsMin } from "../../limits.ts"
import type { Service } from "../../pipeline/index.ts"
import { clusterPath, historyPath } from "./cluster-paths.ts"
import { byDocumentName } from "./node-figures.ts"

type Shown = Pick<NodeHistory, "events" | "samples">

const sampleElement = ({ atMs, ...figures }: Sample): Element =>
  element("sample", { at: isoTime(atMs), ...byDocumentName(figures) })

const eventElement = ({ atMs, ...event }: SeenEvent): Element =>
  element("event", { at: isoTime(atMs), ...event }, eventText(event))

type Figure = Exclude<keyof Sample, "atMs">

interface Drawn {
  readonly title: string
  readonly unit: ChartUnit
  /** The figures, the main one last. */
  readonly figures: ReadonlyArray<readonly [name: string, figure: Figure]>
  readonly topMin: number
}

const medianAnd99th = (median: Figure, high: Figure): Drawn["figures"] => [
  ["median", median],
  ["p99", high]
]

const drawnCharts: ReadonlyArray<Drawn> = [
  { title: "Requests", unit: "per-second", figures: [["", "requestsPerSecond"]], topMin: 1 },
  {
    title: "Time of a request",
    unit: "ms",
    figures: medianAnd99th("requestP50Ms", "requestP99Ms"),
    topMin: 5
  },
  { title: "Commits", unit: "per-second", figures: [["", "commitsPerSecond"]], topMin: 1 },
  {
    title: "Time of a commit",
    unit: "ms",
    figures: medianAnd99th("commitP50Ms", "commitP99Ms"),
    topMin: 5
  },
  {
    title: "Attempts of deliveries",
    unit: "per-second",
    figures: [["", "attemptsPerSecond"]],
    topMin: 1
  },
  { title: "Waiting deliveries", unit: "count", figures: [["", "deliveriesWaiting"]], topMin: 10 },
  { title: "Messages in queues", unit: "count", figures: [["", "queued"]], topMin: 10 },
  { title: "Timers that are due", unit: "count", figures: [["", "timersDue"]], topMin: 10 },
  {
    title: "Event loop",
    unit: "percent",
    figures: [["", "loopPercent"]],
    topMin: 100
  },
  { title: "Memory", unit: "bytes", figures: [["", "memoryBytes"]], topMin: 1 }
]

/** The time from the first sample to the last one; the clock may have been set back between. */
const spanOf = (samples: ReadonlyArray<Sample>) => {
  const fromMs = samples[0]?.atMs ?? 0
  return { fromMs, untilMs: Math.max(fromMs, samples.at(-1)?.atMs ?? 0) }
}

/** When the samples were taken: ascending, also if the clock was set back between. */
const ascending = (samples: ReadonlyArray<Sample>): ReadonlyArray<number> => {
  let latestMs = 0
  return samples.map(({ atMs }) => latestMs = Math.max(latestMs + 1, atMs))
}

const chartsOf = (samples: ReadonlyArray<Sample>): Html => {
  const samplesMs = ascending(samples)
  const untilMs = samplesMs.at(-1) ?? 0
  const fromMs = Math.min(samplesMs[0] ?? 0, untilMs - shownMsMin)
  return charts(
    { samplesMs, fromMs, untilMs },
    drawnCharts.map(({ figures, ...rest }): LineChart => ({
      ...rest,
      lines: figures.map(([name, figure]) => ({ name, values: samples.map((one) => one[figure]) }))
    }))
  )
}

const entry = ({ atMs, ...event }: SeenEvent): Html =>
  html`<li><p>${eventText(event)}</p>
<p class="quiet">${timeAt(atMs)}</p></li>
`

/** Where all events are, if the page has not all of them. */
const moreEvents = (total: number): Html =>
  total <= shownEventsMax
    ? nothing
    : html`<p class="quiet">These are the newest ${shownEventsMax} of ${total} events. All
are in the history as ${link(`${historyPath}?format=xml`, "XML")} and as ${
      link(`${historyPath}?format=json`, "JSON")
    }.</p>
`

const timeLine = (events: ReadonlyArray<SeenEvent>): Html => {
  const newest = events.slice(-shownEventsMax).toReversed()
  return html`<h2>Time line</h2>
${
    newest.length === 0
      ? emptyState("Nothing has happened since this node started.")
      : html`<ol class="entries">${newest.map(entry)}</ol>
${moreEvents(events.length)}`
  }`
}

/** Whose figures they are, and of which time. */
const about = (node: string, samples: ReadonlyArray<Sample>): Html => {
  const { fromMs, untilMs } = spanOf(samples)
  return html`<p class="quiet">Node ${node}, from ${timeAt(fromMs)} to ${
    timeAt(untilMs)
  }. It measures
every ${sampleMs / 1_000} s, and forgets everything when it stops.</p>
`
}

const page = (node: string, { events, samples }: Shown): Html =>
  html`${
    livePart(
      "history-about",
      samples.length === 0
        ? emptyState(`The first figures come ${sampleMs / 1_000} s after the start.`)
        : about(node, samples)
    )
  }${livePart("history-charts", samples.length === 0 ? nothing : chartsOf(samples))}${
    livePart("history-events", timeLine(events))
  }${liveState}`

/** What the answering node has measured in the last hour, and the last events. */
export const historyView = (
  { history, system }: {
    readonly history: Shown
    readonly system: Pick<Service["system"], "cluster">
  }
): ResourceView => {
  const node = system.cluster().self
  const { events, samples } = history
  return {
    title: "History of a node",
    tree: () =>
      element(
        "history",
        { node, "sample-seconds": sampleMs / 1_000 },
        ...listElement("samples", samples.map(sampleElement)),
        ...listElement("events", events.map(eventElement))
      ),
    body: () => page(node, history),
    scripts: [liveScriptPath, chartsScriptPath],
    links: [{ rel: "up", href: clusterPath, title: "The cluster" }]
  }
}
