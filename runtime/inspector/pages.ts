/** The pages of the inspector, made of its documents. They work without their script. */
import type { Inspection } from "../activation/index.ts"
import type { Address } from "../actor/index.ts"
import type { ActorDocument, KindDocument, MessagesDocument, MomentQuery, NodeDocument,
  ShownItem } from "./documents.ts"
import { html, type Markup, type MarkupValue } from "./markup.ts"
import type { RecordedMessage } from "../recording/index.ts"

/** Characters of a message and of its reply in a list; the JSON interface has more. */
const shownCharsMax = 400

/** A page: its title, and what is in it. */
export interface Page {
  readonly title: string
  readonly body: Markup
  /** Whether the script keeps it current. */
  readonly isLive: boolean
}

const pathOf = ({ id, kind }: Address, { commit, item }: MomentQuery = {}): string => {
  const query = commit !== undefined
    ? `?commit=${commit}`
    : item !== undefined
    ? `?item=${item}`
    : ""
  return `/actors/${kind}/${id}${query}`
}

const time = (atMs: number): Markup => {
  const iso = new Date(atMs).toISOString()
  return html`<time datetime="${iso}" title="${iso}">${iso.slice(11, 23)}</time>`
}

const day = (atMs: number): Markup => {
  const iso = new Date(atMs).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 23).replace("T", " ")} UTC</time>`
}

const cut = (text: string): string =>
  text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text

const fact = (name: string, value: MarkupValue): Markup =>
  html`<div><dt>${name}</dt><dd>${value}</dd></div>
`

/** The whole document around a page. */
export const documentOf = ({ body, isLive, title }: Page): string =>
  `<!doctype html>\n${
    html`<html lang="en"><head><meta charset="utf-8"><title>${title} · inspector</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="/icon.svg"><link rel="stylesheet" href="/style.css">
<script src="/script.js" defer></script></head>
<body><a class="skip" href="#main">Skip to the content</a>
<header><nav aria-label="Inspector"><a href="/">Actors</a> <a href="/messages">Messages</a></nav>
<p id="live" data-live="${String(isLive)}" hidden></p></header>
<main id="main" tabindex="-1"><h1>${title}</h1>
${body}</main>
<footer><p>For development: it shows all that actors store and receive, to whoever can open this
page.</p></footer></body></html>
`.text
  }`

const outcomeOf = ({ outcome, result, tookMs }: RecordedMessage): Markup => {
  if (outcome === "waiting") return html`<span class="wait">waits for its commit</span>`
  const text = result === undefined ? "" : cut(result)
  const kind = outcome === "replied" ? "good" : "bad"
  return html`<span class="${kind}">${outcome}</span> <code>${text}</code> <span
class="quiet">in ${tookMs} ms</span>`
}

/** Of a list of one actor's messages, none names the actor. */
const messageList = (messages: ReadonlyArray<RecordedMessage>, isOfOne = false): Markup =>
  messages.length === 0 ?
    html`<p>None recorded.</p>` :
    html`<ol class="rows">${
      messages.map((one) =>
        html`<li><p>${time(one.atMs)} ${
          isOfOne ? undefined : html`<a href="${pathOf(one)}">${one.kind}/${one.id}</a> `
        }<b>${one.tag}</b>${
          one.isFromTimer ? html` <span class="quiet">by a timer</span>` : undefined
        }
<code>${cut(one.content)}</code></p>
<p>${outcomeOf(one)}</p></li>
`
      )
    }</ol>
`

const actorLinks = (actors: ReadonlyArray<Address>): Markup =>
  html`<ul class="rows">${
    actors.map((one) =>
      html`<li><a href="${pathOf(one)}">${one.kind}/${one.id}</a></li>
`
    )
  }</ul>
`

const kindList = ({ kinds }: NodeDocument): Markup =>
  html`<ul class="rows">${
    kinds.map(({ decisions, inMemory, kind, refusals, restarts, waiting }) =>
      html`<li><p><a href="/actors/${kind}">${kind}</a></p>
<p class="quiet">${inMemory} in memory · ${waiting} in queues · ${decisions} messages decided,
${refusals} of them refused · ${restarts} restarts</p></li>
`
    )
  }</ul>
`

const inQuarantine = ({ quarantined }: NodeDocument): Markup | undefined =>
  quarantined.length === 0 ? undefined : html`<h2>In quarantine</h2>
<ul class="rows">${
    quarantined.map(({ id, kind, reason }) =>
      html`<li><p><a href="${
        pathOf({ kind, id })
      }">${kind}/${id}</a></p><p class="bad">${reason}</p></li>
`
    )
  }</ul>
`

export const nodePage = (node: NodeDocument): Page => {
  const { changed, commitMs, commits, messages, nodes, recordedSinceMs, store } = node
  return {
    title: "Actors",
    isLive: true,
    body: html`${kindList(node)}${inQuarantine(node)}<h2>Changed last</h2>
${changed.length === 0 ? html`<p>None recorded.</p>` : actorLinks(changed)}<h2>Last messages</h2>
${messageList(messages)}<h2>Node</h2>
<dl>${fact("Store", store)}${fact("Node", node.node)}${
      nodes.length > 1 ? fact("Cluster", nodes.join(", ")) : undefined
    }${fact("Timers in memory", `${node.timers}, ${node.timersDue} due`)}${
      fact(
        "Commits",
        commitMs === undefined ? commits : `${commits}, each ${commitMs.toFixed(1)} ms (median)`
      )
    }${fact("Recorded since", day(recordedSinceMs))}</dl>
`
  }
}

export const messagesPage = ({ kind, kinds, messages }: MessagesDocument): Page => ({
  title: kind === undefined ? "Messages" : `Messages to ${kind}`,
  isLive: true,
  body: html`<p class="quiet">Those that reached actors of this node, the newest first.</p>
<nav aria-label="Kinds"><ul class="inline">${
    [undefined, ...kinds].map((one) =>
      html`<li>${
        one === kind
          ? html`<span aria-current="true">${one ?? "all"}</span>`
          : html`<a href="/messages${one === undefined ? "" : `?kind=${one}`}">${one ?? "all"}</a>`
      }</li>
`
    )
  }</ul></nav>
${messageList(messages)}`
})

export const kindPage = ({ ids, kind, next }: KindDocument): Page => ({
  title: kind,
  isLive: false,
  body: html`<form action="/actors/${kind}" method="get" role="search"><label>Id <input name="id"
required autocomplete="off" spellcheck="false"></label> <button>Open</button></form>
<p class="quiet">Actors that have a record, by id.</p>
${ids.length === 0 ? html`<p>None yet.</p>` : actorLinks(ids.map((id) => ({ kind, id })))}${
    next === undefined
      ? undefined
      : html`<p><a rel="next" href="/actors/${kind}?after=${next}">More</a></p>
`
  }`
})

/** A step to another moment; text alone where there is none. */
const step = (
  of: Address,
  to: MomentQuery | undefined,
  text: string,
  rel: string | undefined
): Markup => {
  if (to === undefined) return html`<li><span aria-disabled="true">${text}</span></li>`
  return rel === undefined
    ? html`<li><a href="${pathOf(of, to)}">${text}</a></li>`
    : html`<li><a href="${pathOf(of, to)}" rel="${rel}">${text}</a></li>`
}

const steps = (actor: ActorDocument): Markup => {
  const { links: { first, isPast, next, previous } } = actor
  return html`<nav aria-label="Time travel"><ul class="inline steps">${
    step(actor, first, "First", undefined)
  }${step(actor, previous, "← Back", "prev")}${step(actor, next, "Forward →", "next")}${
    step(actor, isPast ? {} : undefined, "Now", undefined)
  }</ul></nav>
`
}

const momentText = (actor: ActorDocument): Markup => {
  const { inspection, moment, recordedCommits, recordedSinceMs } = actor
  if (moment._tag === "Now") {
    return inspection.isLoaded
      ? html`Now, in memory: the store may not have all of it yet.`
      : html`Now, from the store: the actor is not in memory.`
  }
  if (moment._tag === "Item") {
    return html`As of item ${moment.item} of the log. States are not derived from the log, and the
recording began later, at ${day(recordedSinceMs)}: the state of that time is not known.`
  }
  const { at, commit } = moment
  return html`After commit ${at + 1} of ${recordedCommits} recorded, at ${day(commit.atMs)}.`
}

/** The state as indented JSON; lines that the state before does not have are marked. */
const stateText = (state: string, before: string | undefined): Markup => {
  const linesOf = (text: string): ReadonlyArray<string> => {
    try {
      return JSON.stringify(JSON.parse(text), null, 2).split("\n")
    } catch {
      return text.split("\n")
    }
  }
  const plain = (line: string) => line.replace(/,$/, "")
  const old = before === undefined ? undefined : new Set(linesOf(before).map(plain))
  const lines = linesOf(state).map((line) =>
    old === undefined || old.has(plain(line))
      ? html`${line}
`
      : html`<mark>${line}</mark>
`
  )
  return html`<pre tabindex="0" role="region" aria-label="State">${lines}</pre>
${
    lines.length > 0 && old !== undefined
      ? html`<p class="quiet">Marked: not in the recorded state before.</p>
`
      : undefined
  }`
}

const stateOf = ({ moment, state, stateBefore, stateChars }: ActorDocument): Markup => {
  if (state === null) {
    return html`<p>It has no record.</p>
`
  }
  if (state !== undefined) return stateText(state, stateBefore)
  return stateChars === undefined
    ? html`<p>Not known${
      moment._tag === "Item" ? "" : ": the commit that wrote it was not recorded"
    }.</p>
`
    : html`<p>Its ${stateChars} characters are too many to be shown.</p>
`
}

const queueOf = ({ oldestMs, queued, waiting = [] }: Inspection): MarkupValue => {
  if (oldestMs === undefined) return queued
  const kinds = waiting.map(({ count, message }) => `${count} ${message}`).join(", ")
  return html`${queued} (${kinds}), the oldest since ${day(oldestMs)}`
}

const timerOf = (timerMs: number | null | undefined): MarkupValue =>
  timerMs === undefined ? "not known" : timerMs === null ? "none" : day(timerMs)

/** What an inspection has of now only, without those that say nothing. */
const troubleOf = ({ fault, faultAtMs, quarantine, restarts }: Inspection): MarkupValue => [
  fact("Restarts in the last minute", restarts),
  fact(
    "Last fault",
    fault === undefined
      ? "none"
      : html`<span class="bad">${fault}</span>${
        faultAtMs === undefined ? undefined : html`, ${day(faultAtMs)}`
      }`
  ),
  quarantine === undefined
    ? ""
    : fact("In quarantine until", html`<span class="bad">${day(quarantine.untilMs)}</span>`)
]

const changeOf = ({ moment }: ActorDocument): MarkupValue => {
  if (moment._tag !== "Commit") return undefined
  const { appended, changesState, removed, state } = moment.commit
  const changes = [
    ...changesState ? [state === null ? "removed the actor" : "wrote the state"] : [],
    ...appended.length > 0 ? [`appended ${appended.map((n) => `item ${n}`).join(", ")}`] : [],
    ...removed.length > 0 ? [`removed ${removed.map((n) => `item ${n}`).join(", ")}`] : []
  ]
  return fact("The commit", changes.length === 0 ? "changed timers only" : changes.join(", "))
}

const facts = (actor: ActorDocument): Markup => {
  const { head, inspection, moment, node, shard, timerMs } = actor
  const isNow = moment._tag === "Now"
  return html`<dl>${isNow ? fact("In memory", inspection.isLoaded ? "yes" : "no") : undefined}${
    changeOf(actor)
  }${fact("Timer", timerOf(timerMs))}${fact("Last log item", head)}${
    isNow ? fact("Queue", queueOf(inspection)) : undefined
  }${isNow ? troubleOf(inspection) : undefined}${
    isNow
      ? fact("Shard", node === undefined ? `${shard}, of no node` : `${shard}, of the node ${node}`)
      : undefined
  }</dl>
`
}

const logOf = (actor: ActorDocument): Markup => {
  const item = ({ atMs, n, value }: ShownItem) =>
    html`<li><p><a href="${pathOf(actor, { item: n })}">Item ${n}</a> ${
      atMs === undefined ? html`<span class="quiet">before the recording</span>` : time(atMs)
    }</p>
<p><code>${cut(value)}</code></p></li>
`
  const { log } = actor
  return log.length === 0 ?
    html`<p>It is empty.</p>` :
    html`<ol class="rows">${log.toReversed().map(item)}</ol>
`
}

export const actorPage = (actor: ActorDocument): Page => ({
  title: `${actor.kind}/${actor.id}`,
  isLive: actor.moment._tag === "Now",
  body: html`<p><a href="/actors/${actor.kind}">All of the kind ${actor.kind}</a></p>
${steps(actor)}<p class="quiet">${momentText(actor)}</p>
<h2>State</h2>
${stateOf(actor)}${facts(actor)}<h2>Log</h2>
${logOf(actor)}<h2>Messages</h2>
${messageList(actor.messages, true)}`
})

export const faultPage = (title: string, text: string): Page => ({
  title,
  isLive: false,
  body: html`<p>${text}.</p>
<p><a href="/">All actors</a></p>
`
})
