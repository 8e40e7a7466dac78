/** The recent commits of an actor, on its page. */
import { emptyState, type Html, html, timeAt } from "../../../formats/html/index.ts"
import { type Element, element, isoTime } from "../../../formats/xml/index.ts"
import { inspectedCommitsMax } from "../../../limits.ts"
import { absoluteUri, type Service } from "../../../pipeline/index.ts"
import { recordingAdvice } from "./advice.ts"
import { changeText, nameOf, pathOf, type RecordedCommits, stateChange } from "./moments.ts"

/** The last ones, the newest first. */
const newest = ({ commits }: RecordedCommits) => commits.slice(-inspectedCommitsMax).toReversed()

/** Undefined where the node records nothing. */
export const commitsElement = (
  service: Service,
  recorded: RecordedCommits | undefined
): Element | undefined => {
  if (recorded === undefined) return undefined
  const { commits, node, sinceMs } = recorded
  return element(
    "commits",
    { node, since: isoTime(sinceMs), recorded: commits.length },
    ...newest(recorded).map((one) =>
      element("commit", {
        name: nameOf(recorded, one),
        href: absoluteUri(service, pathOf(recorded, one)),
        at: isoTime(one.atMs),
        state: stateChange(one),
        appended: one.appended.length,
        removed: one.removed.length,
        head: one.head
      })
    )
  )
}

/** Who has recorded them, and since when. */
const about = ({ commits, node, sinceMs }: RecordedCommits): Html =>
  html`<p class="quiet">Those of the node ${node} since ${timeAt(sinceMs)}, the newest first${
    commits.length > inspectedCommitsMax
      ? html`: the last ${inspectedCommitsMax} of ${commits.length}`
      : ""
  }. Commits of other nodes, to which its shard has moved, are not among them.</p>
`

export const commitsSection = (recorded: RecordedCommits | undefined): Html => {
  if (recorded === undefined) {
    return html`<h2>Commits</h2>
<p class="quiet">${recordingAdvice}</p>
`
  }
  return html`<h2>Commits</h2>
${about(recorded)}${
    recorded.commits.length === 0
      ? emptyState("None is recorded.")
      : html`<ol class="entries">${
        newest(recorded).map((one, at) =>
          html`<li><p><a href="${pathOf(recorded, one)}">After commit ${
            recorded.commits.length - at
          }</a> <span class="quiet">${timeAt(one.atMs)}</span></p>
<p class="quiet">${changeText(one)}</p></li>
`
        )
      }</ol>
`
  }`
}
