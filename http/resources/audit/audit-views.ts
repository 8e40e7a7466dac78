/** The documents and pages of the audit log. */
import { AuditOutcome, type ChainPoint, type decodeEntry } from "../../../actors/audit/index.ts"
import type { LogItem } from "../../../runtime/index.ts"
import { auditActions } from "../../audit/index.ts"
import { emptyState, type Html, html, type HtmlForm, link, nothing, type PageLink, renderForm,
  statusBadge, type StatusBadges, table, timeAt } from "../../formats/html/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { type Element, element, isoTime } from "../../formats/xml/index.ts"
import { absoluteUri, type PageRequest, type Service } from "../../pipeline/index.ts"

export const auditPath = "/audit"

const chainPath = "/audit/chain"

export const auditOutcomes: ReadonlyArray<AuditOutcome> = AuditOutcome.literals

/** What a listing is to show; undefined for all. `target` is the beginning of a path. */
export interface ListingFilter {
  readonly account: string | undefined
  readonly action: string | undefined
  readonly outcome: AuditOutcome | undefined
  readonly target: string | undefined
  /** As the client wrote it, and in ms since the epoch. */
  readonly since: string | undefined
  readonly sinceMs: number | undefined
}

/** An entry with its place in the chain. */
export interface ListedEntry {
  readonly n: number
  readonly hash: string
  readonly entry: NonNullable<ReturnType<typeof decodeEntry>>
}

interface Listing {
  readonly anchor: ChainPoint
  readonly last: ChainPoint
  readonly listed: ReadonlyArray<ListedEntry>
  readonly filter: ListingFilter
  readonly page: PageRequest
  readonly next: number | undefined
}

/** Both ends of the chain, as attributes. */
const endsOf = ({ anchor, last }: Pick<Listing, "anchor" | "last">) => ({
  entries: last.n - anchor.n,
  "last-number": last.n,
  "last-hash": last.hash,
  "anchor-number": anchor.n,
  "anchor-hash": anchor.hash,
  "anchor-time": anchor.n === 0 ? undefined : isoTime(anchor.atMs)
})

const entryElement = ({ entry, hash, n }: ListedEntry): Element => {
  const { account, action, atMs, count, detail, from, of, outcome, target } = entry
  return element("entry", {
    number: n,
    time: isoTime(atMs),
    account,
    from,
    action,
    target,
    outcome,
    of,
    count,
    detail,
    hash
  })
}

const outcomeBadges: StatusBadges<AuditOutcome> = {
  begun: ["wait", "○ begun"],
  done: ["good", "✓ done"],
  refused: ["bad", "✗ refused"],
  unknown: ["wait", "? unknown"]
}

const quiet = (text: string | undefined): Html =>
  text === undefined ? nothing : html` <span class="quiet">${text}</span>`

const rowOf = ({ entry }: ListedEntry): Html => {
  const { account = "–", action, atMs, count, detail, from, outcome, target } = entry
  const times = count === undefined || count === 1 ? "" : ` (${count} times)`
  return html`<tr><td>${timeAt(atMs)}</td><td>${account}${quiet(from)}</td>
<td>${action}${times}${quiet(target)}</td>
<td>${statusBadge(outcomeBadges, outcome)}${quiet(detail)}</td></tr>
`
}

const filterForm = ({ account, action, outcome, since, target }: ListingFilter): HtmlForm => ({
  action: auditPath,
  method: "get",
  legend: "Show only",
  controls: [
    { name: "account", label: "Account", value: account ?? "", width: "third" },
    {
      name: "action",
      label: "Action",
      type: "select",
      value: action ?? "",
      options: [["", "any"], ...auditActions.map((one): [string, string] => [one, one])],
      width: "third"
    },
    {
      name: "outcome",
      label: "Outcome",
      type: "select",
      value: outcome ?? "",
      options: [["", "any"], ...auditOutcomes.map((one): [string, string] => [one, one])],
      width: "third"
    },
    {
      name: "target",
      label: "Target",
      value: target ?? "",
      hint: "The beginning of a path, such as /mailboxes/.",
      width: "half"
    },
    {
      name: "since",
      label: "Since",
      value: since ?? "",
      hint: "A time such as 2026-07-01T00:00:00Z.",
      width: "half"
    }
  ],
  submit: "Show"
})

/** The fields of the filter above the list: open while they choose something. */
const filterFields = (filter: ListingFilter): Html => {
  const isChosen = Object.values(filter).some((one) => one !== undefined)
  return renderForm(filterForm(filter), isChosen ? "secondary" : "rare")
}

const listingPage = ({ anchor, filter, last, listed }: Listing): Html =>
  html`<p>${last.n - anchor.n} entries. The last one is number ${last.n}; its hash is
<code>${last.hash}</code>. Note it elsewhere: <code>restante audit verify</code> finds every change
of what was recorded before.</p>
${filterFields(filter)}${
    listed.length === 0
      ? emptyState(
        filter.sinceMs === undefined ? "Nothing is recorded." : "Nothing is recorded since then."
      )
      : table(
        "Audit log",
        ["Time", "Account and network", "Action and target", "Outcome"],
        listed.map(rowOf),
        "stack"
      )
  }`

/** The link to the next page of the same filter. */
const nextOf = (service: Service, { filter, next, page }: Listing): ReadonlyArray<PageLink> => {
  if (next === undefined) return []
  const { account, action, outcome, since, target } = filter
  const fields = Object.entries({ account, action, outcome, target, since })
    .flatMap(([name, value]): Array<[string, string]> => value === undefined ? [] : [[name, value]])
  const query = new URLSearchParams([...fields, ["limit", String(page.limit)]])
  query.set("after", String(next))
  return [{ rel: "next", href: absoluteUri(service, `${auditPath}?${query}`), title: "Older" }]
}

/** A page of the log, newest first. */
export const auditView = (service: Service, listing: Listing): ResourceView => ({
  title: "Audit log",
  tree: element("audit", endsOf(listing), ...listing.listed.map(entryElement)),
  body: () => listingPage(listing),
  links: nextOf(service, listing)
})

/** Stored texts, oldest first. The hash of each is in the next one, the last in `last-hash`. */
export const chainView = (
  service: Service,
  { anchor, items, last }: Pick<Listing, "anchor" | "last"> & {
    readonly items: ReadonlyArray<LogItem>
  }
): ResourceView => {
  const end = items.at(-1)
  const next = end === undefined || end.n >= last.n
    ? []
    : [{ rel: "next", href: absoluteUri(service, `${chainPath}?after=${end.n}`), title: "Newer" }]
  return {
    title: "Chain of the audit log",
    tree: element(
      "audit-chain",
      endsOf({ anchor, last }),
      ...items.map(({ n, value }) => element("item", { number: n }, value))
    ),
    body: () =>
      html`<p>The entries as they are stored; ${link(auditPath, "the log")} is for people.</p>
<pre>${items.map(({ n, value }) => html`${n} ${value}\n`)}</pre>`,
    links: [{ rel: "up", href: auditPath, title: "Audit log" }, ...next]
  }
}
