/** An actor after one of its commits: a part of its document, and its page. */
import { type Html, html, nothing, type PageLink, timeAt } from "../../../formats/html/index.ts"
import { type Element, element, isoTime, listElement,
  optionalElement } from "../../../formats/xml/index.ts"
import { absoluteUri, type Service } from "../../../pipeline/index.ts"
import type { RecordedCommit } from "../../../../runtime/index.ts"
import { actorPath } from "../cluster-paths.ts"
import { shownItem, shownJson, withShortLists } from "../shown-fields.ts"
import { changeText, nameOf, type PastMoment, pathOf, type RecordedCommits } from "./moments.ts"

/** The commits before and after it, and the first one; undefined where there is none. */
const neighbors = ({ commits }: RecordedCommits, { at }: PastMoment) => ({
  first: at <= 1 ? undefined : commits[0],
  previous: at === 0 ? undefined : commits[at - 1],
  next: commits[at + 1]
})

const relations = [
  ["first", "first", "First commit"],
  ["previous", "prev", "Commit before"],
  ["next", "next", "Commit after"]
] as const

/** The ways through the commits, and to the actor of now. */
export const pastLinks = (
  service: Service,
  recorded: RecordedCommits,
  moment: PastMoment
): ReadonlyArray<PageLink> => {
  const found = neighbors(recorded, moment)
  const steps = relations.flatMap(([name, rel, title]) => {
    const commit = found[name]
    return commit === undefined
      ? []
      : [{ rel, href: absoluteUri(service, pathOf(recorded, commit)), title }]
  })
  return [...steps, { rel: "latest-version", href: actorPath(recorded.address), title: "Now" }]
}

/** The state as documents show it; undefined where it is not known, or not kept. */
const shownState = (
  kind: string,
  { state }: RecordedCommit,
  indentation: number
): string | undefined =>
  state?.text === undefined ? undefined : shownJson(kind, state.text, indentation)

/** Part of the document of an actor: how it was. */
export const pastElement = (
  service: Service,
  recorded: RecordedCommits,
  moment: PastMoment
): Element => {
  const { address: { kind } } = recorded
  const { commit, log } = moment
  const { next, previous } = neighbors(recorded, moment)
  const hrefOf = (one: RecordedCommit | undefined) =>
    one === undefined ? undefined : absoluteUri(service, pathOf(recorded, one))
  return element(
    "past",
    {
      commit: nameOf(recorded, commit),
      at: isoTime(commit.atMs),
      previous: hrefOf(previous),
      next: hrefOf(next),
      head: commit.head,
      removed: commit.state === null ? "true" : undefined,
      "state-characters": commit.state?.chars,
      timer: isoTime(commit.timerMs ?? undefined),
      "timer-known": String(commit.timerMs !== undefined),
      "log-known": String(log !== undefined)
    },
    optionalElement("state", shownState(kind, commit, 0)),
    ...listElement(
      "items",
      (log ?? []).map((item) => element("item", { n: item.n }, shownItem(kind, item)))
    )
  )
}

/** A text that is the whole line, or that ends with a comma within a list. */
const withoutComma = (line: string): string => line.replace(/,$/, "")

/** The state, whose lines that the state before does not have are marked. */
const markedState = (text: string, before: string | undefined): Html => {
  const known = before === undefined ? undefined : new Set(before.split("\n").map(withoutComma))
  const lines = text.split("\n").map((line, at) => {
    const shown = known === undefined || known.has(withoutComma(line))
      ? html`${line}`
      : html`<mark>${line}</mark>`
    return at === 0
      ? shown
      : html`
${shown}`
  })
  return html`<pre tabindex="0" aria-label="State">${lines}</pre>
${
    known === undefined
      ? nothing
      : html`<p class="quiet">Colored lines are not in the state before. Of texts that are
not shown, only lengths are compared.</p>
`
  }`
}

const stateOf = (recorded: RecordedCommits, moment: PastMoment): Html => {
  const { address: { kind } } = recorded
  const { commit: { state } } = moment
  if (state === null) return html`<p>It had no record.</p>`
  if (state === undefined) {
    return html`<p>It is not known: the commit that wrote it was not recorded.</p>`
  }
  if (state.text === undefined) {
    return html`<p>Its ${state.chars} characters were too many to be recorded.</p>`
  }
  const text = shownJson(kind, state.text, 2)
  if (text === undefined) {
    return html`<p>Its record, of ${state.chars} characters, cannot be read.</p>`
  }
  const { previous } = neighbors(recorded, moment)
  const before = previous && shownState(kind, previous, 2)
  return markedState(withShortLists(text), before && withShortLists(before))
}

const timerOf = ({ timerMs }: RecordedCommit): Html =>
  timerMs === undefined
    ? html`not known: the commit that set it was not recorded`
    : timerMs === null
    ? html`none`
    : timeAt(timerMs)

const logOf = ({ address: { kind } }: RecordedCommits, { log }: PastMoment): Html => {
  if (log === undefined) {
    return html`<p>It is not known: the actor was removed since, with its log.</p>`
  }
  if (log.length === 0) return html`<p>The log has none of them.</p>`
  return html`<ol class="entries">${
    log.map((item) =>
      html`<li><p>Item ${item.n}</p>
<pre>${shownItem(kind, item)}</pre></li>
`
    )
  }</ol>
`
}

/** The page of an actor as it was. */
export const pastBody = (recorded: RecordedCommits, moment: PastMoment): Html => {
  const { at, commit } = moment
  return html`<p>After commit ${
    at + 1
  } of ${recorded.commits.length} that the node ${recorded.node} has recorded, at ${
    timeAt(commit.atMs)
  }.</p>
<dl class="facts"><dt>The commit</dt><dd>${changeText(commit)}</dd>
<dt>Timer</dt><dd>${timerOf(commit)}</dd>
<dt>Last log item</dt><dd>${commit.head}</dd>
</dl>
<h2>State</h2>
${stateOf(recorded, moment)}<h2>Last items of the log</h2>
<p class="quiet">Those that the log still has.</p>
${logOf(recorded, moment)}`
}
