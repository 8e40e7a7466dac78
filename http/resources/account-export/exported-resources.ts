/** The lines of cabinets, sent notifications, sessions and queries. */
import type { OwnedEntry } from "../../../actors/account/index.ts"
import type { CabinetMessage, CabinetView } from "../../../actors/cabinet/index.ts"
import { cabinetKind, notificationKind, queriesTable, sessionKind } from "../../../actors/index.ts"
import { fragmentOf, type NotificationMessage,
  type NotificationView } from "../../../actors/notification/index.ts"
import type { SessionMessage, SessionReply, SessionView } from "../../../actors/session/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import type { ResourceView } from "../../formats/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { absoluteUri, askOrRefusal, describeActor, type Service } from "../../pipeline/index.ts"
import { cabinetDocument, cabinetPath } from "../cabinets/index.ts"
import { mailboxPath, notificationPath, pausesElement, pausesPath, readPausesOf,
  statusElement } from "../outgoing/index.ts"
import { queryView } from "../queries/index.ts"
import { queryPath } from "../rows/index.ts"
import { answerPath, answerView, sessionPath, sessionView } from "../sessions/index.ts"
import { type ExportLine, run, withoutSecret } from "./export-source.ts"

/** The document of a view. */
const xmlOf = ({ tree }: ResourceView): string => {
  const element = typeof tree === "function" ? tree() : tree
  return element === undefined ? "" : writeElement(element)
}

export async function* exportedCabinet(
  service: Service,
  account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const message: CabinetMessage = { _tag: "Describe", caller: { account, admin: false } }
  const view = await run(describeActor<CabinetView>(service, address(cabinetKind, id), message))
  if (isRefusal(view)) return
  const href = absoluteUri(service, cabinetPath(id))
  yield { kind: "cabinet", href, xml: xmlOf(cabinetDocument(service, id, view)) }
}

/** Which of the account's relays are paused; no line if none ever was. */
export async function* exportedPauses(
  service: Service,
  account: string
): AsyncGenerator<ExportLine> {
  const pauses = await run(readPausesOf(service, account, { account, admin: false }))
  if (pauses.version === 0) return
  const href = absoluteUri(service, pausesPath({ path: mailboxPath(account) }))
  yield { kind: "pauses", href, xml: writeElement(pausesElement(href, pauses)) }
}

/**
 * What was sent, with what replaced or withdrew it, and then the state of its recipients, in one
 * line or in several.
 */
export async function* exportedSent(
  service: Service,
  account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const to = address(notificationKind, id)
  const href = absoluteUri(service, notificationPath(account, id))
  const caller = { account, admin: false }
  let from = 0
  for (;;) {
    const message: NotificationMessage = { _tag: "Describe", caller, from }
    const view = await run(describeActor<NotificationView>(service, to, message))
    if (isRefusal(view)) return
    if (from === 0) {
      const items = [1, ...(view.followUps ?? []).map((one) => one.item)]
      for (const n of items) {
        const [item] = await run(service.system.read(to, n, 1))
        const fragment = item?.n === n ? fragmentOf(item.value) : undefined
        if (fragment === undefined) continue
        const xml = `<notification>${withoutSecret(fragment)}</notification>`
        yield { kind: "sent", href, xml }
      }
    }
    yield { kind: "recipients", href, xml: writeElement(statusElement({ href }, view)) }
    from += view.recipients.length
    if (from >= view.count || view.recipients.length === 0) return
  }
}

export async function* exportedSession(
  service: Service,
  _account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const to = address(sessionKind, id)
  const describe: SessionMessage = { _tag: "Describe" }
  const view = await run(describeActor<SessionView>(service, to, describe))
  if (isRefusal(view)) return
  const href = absoluteUri(service, sessionPath(id))
  yield { kind: "session", href, xml: xmlOf(sessionView(id, view)) }
  for (const step of view.recorded) {
    const read: SessionMessage = { _tag: "ReadAnswer", step }
    const reply = await run(askOrRefusal<SessionReply>(service, to, read))
    if (reply._tag !== "Recorded") continue
    const answer = answerView(id, step, reply.answer, true)
    yield { kind: "answer", href: absoluteUri(service, answerPath(id, step)), xml: xmlOf(answer) }
  }
}

export async function* exportedQuery(
  service: Service,
  _account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const value = await run(service.records.get(queriesTable, id))
  if (value === undefined) return
  const href = absoluteUri(service, queryPath(id))
  yield { kind: "query", href, xml: xmlOf(queryView(service, id, value)) }
}
