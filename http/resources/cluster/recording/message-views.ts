/** The messages that the answering node has recorded: their document and their page. */
import { badge, emptyState, type Html, html, nothing, timeAt } from "../../../formats/html/index.ts"
import type { ResourceView } from "../../../formats/index.ts"
import { type Element, element, isoTime } from "../../../formats/xml/index.ts"
import { inspectedMessagesMax } from "../../../limits.ts"
import { absoluteUri, type Service } from "../../../pipeline/index.ts"
import { keyOf, type RecordedMessage } from "../../../../runtime/index.ts"
import { actorPath, clusterPath, messagesPath } from "../cluster-paths.ts"
import { isIdShown } from "../shown-fields.ts"
import { recordingAdvice } from "./advice.ts"
import { nodeIn } from "./moments.ts"

/** Only those to this kind; undefined: all. */
type Kind = string | undefined

/** A message, and whether its actor is known. */
interface ShownMessage extends RecordedMessage {
  readonly isKnown: boolean
}

/**
 * The last messages. An actor is known by a reply or a commit. Any other id may be what somebody
 * typed as the name of an account or of a mailbox, such as a password in the wrong field.
 */
const shownMessages = (
  recorder: NonNullable<Service["recorder"]>,
  kind: Kind
): ReadonlyArray<ShownMessage> => {
  const all = recorder.messagesOf(kind === undefined ? {} : { kind }, Infinity)
  const replied = new Set(all.filter(({ outcome }) => outcome === "replied").map(keyOf))
  return all.slice(0, inspectedMessagesMax).map((one) => ({
    ...one,
    isKnown: isIdShown(one, replied.has(keyOf(one)) || recorder.commitsOf(one).length > 0)
  }))
}

const messageElement = (service: Service, message: ShownMessage): Element => {
  const { atMs, content, id, isFromTimer, isKnown, kind, outcome, result, seq, tag } = message
  return element(
    "message",
    {
      n: seq,
      at: isoTime(atMs),
      kind,
      id: isKnown ? id : undefined,
      href: isKnown ? absoluteUri(service, actorPath(message)) : undefined,
      name: tag,
      timer: isFromTimer ? "true" : undefined,
      outcome,
      result,
      "took-ms": message.tookMs
    },
    content
  )
}

const kindLinks = (kinds: ReadonlyArray<string>, chosen: Kind): Html =>
  html`<nav aria-label="Kinds"><p class="choices">${
    [undefined, ...kinds].map((kind) =>
      kind === chosen
        ? html`<b aria-current="page">${kind ?? "all"}</b> `
        : html`<a href="${messagesPath(kind)}">${kind ?? "all"}</a> `
    )
  }</p></nav>
`

const badges = {
  replied: ["good", "✓"],
  refused: ["bad", "✗"],
  failed: ["bad", "✗"],
  indeterminate: ["bad", "?"]
} as const

const outcomeOf = ({ outcome, result, tookMs }: RecordedMessage): Html => {
  if (outcome === "waiting") return badge("wait", "… waiting")
  const [kind, sign] = badges[outcome]
  return html`${badge(kind, `${sign} ${outcome}`)}${
    result === undefined ? nothing : html` ${result}`
  } <span class="quiet">in ${tookMs} ms</span>`
}

const actorOf = (message: ShownMessage): Html => {
  const { id, isKnown, kind } = message
  return isKnown
    ? html`<a href="${actorPath(message)}">${kind}/${id}</a>`
    : html`${kind}, id not shown`
}

const entry = (message: ShownMessage): Html => {
  const { atMs, content, isFromTimer, tag } = message
  return html`<li><p>${actorOf(message)} · <b>${tag}</b>${
    isFromTimer ? html` <span class="quiet">by a timer or a signal</span>` : nothing
  }</p>
<p>${outcomeOf(message)} <span class="quiet">${timeAt(atMs)}</span></p>
${content === "{}" ? nothing : html`<pre>${content}</pre>`}</li>
`
}

/** The last messages of the answering node, the newest first. */
export const messagesView = (service: Service, kind: Kind): ResourceView => {
  const { recorder, startId, system } = service
  const node = nodeIn(startId)
  const kinds = [...system.snapshot().activations.keys()]
  const messages = recorder === undefined ? [] : shownMessages(recorder, kind)
  const since = recorder?.startedMs
  return {
    title: kind === undefined ? "Messages of a node" : `Messages of a node: ${kind}`,
    tree: () =>
      element(
        "messages",
        { node, recording: since === undefined ? "off" : "on", since: isoTime(since), kind },
        ...messages.map((one) => messageElement(service, one))
      ),
    body: () =>
      since === undefined
        ? html`<p>${recordingAdvice}</p>
`
        : html`<p class="quiet">To actors of the node ${node} since ${timeAt(since)}, the newest
first, ${inspectedMessagesMax} at most. What users wrote is not shown, nor an id that may be what
somebody typed: of an actor without a reply or a commit, of a key or a throttle.</p>
${kindLinks(kinds, kind)}${
          messages.length === 0
            ? emptyState("None is recorded.")
            : html`<ol class="entries">${messages.map(entry)}</ol>
`
        }`,
    links: [{ rel: "up", href: clusterPath, title: "The cluster" }]
  }
}
