/** The lines of a mailbox: its settings, blocks and registrations, and its notifications. */
import type { OwnedEntry } from "../../../actors/account/index.ts"
import { isRemoval, type MailboxMessage, type MailboxReply } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { writeElement } from "../../formats/xml/index.ts"
import { exportPage } from "../../limits.ts"
import { askOrRefusal, type Service } from "../../pipeline/index.ts"
import { describeMailbox, entryOf, entryXml, mailboxDocument, type MailboxRef,
  mailboxRefNamed } from "../mailboxes/index.ts"
import { blockElement } from "../moderation/index.ts"
import { describeRegistration, registrationElement,
  registrationNamed } from "../registrations/index.ts"
import { availableLines, type ExportLine, run, withoutSecret } from "./export-source.ts"

const askMailbox = (service: Service, { to }: MailboxRef, message: MailboxMessage) =>
  run(askOrRefusal<MailboxReply>(service, to, message))

async function* blocks(
  service: Service,
  mailbox: MailboxRef,
  account: string
): AsyncGenerator<ExportLine> {
  const caller = { account, admin: false }
  const reply = await askMailbox(service, mailbox, { _tag: "Blocks", caller })
  if (reply._tag !== "Blocks") return
  const path = `/mailboxes/${mailbox.name}/blocks`
  for (const block of reply.blocks) {
    const href = `${mailbox.href}/blocks/${block.id}`
    yield { kind: "block", href, xml: writeElement(blockElement(service, path, block)) }
  }
}

async function* registrationLine(
  service: Service,
  mailbox: MailboxRef,
  registration: ReturnType<typeof registrationNamed>
): AsyncGenerator<ExportLine> {
  const view = await run(describeRegistration(service, registration.to))
  if (isRefusal(view)) return
  const xml = writeElement(registrationElement(mailbox, registration, view))
  yield { kind: "registration", href: registration.href, xml }
}

async function* registrations(
  service: Service,
  mailbox: MailboxRef,
  account: string
): AsyncGenerator<ExportLine> {
  const reply = await askMailbox(service, mailbox, { _tag: "Registrations", reader: { account } })
  if (reply._tag !== "Registrations") return
  for (const id of reply.ids) {
    const registration = registrationNamed(mailbox, id)
    yield* availableLines(
      "registration",
      registration.to.id,
      registrationLine(service, mailbox, registration)
    )
  }
}

/** The notifications, oldest first. The export marks none of them as retrieved. */
async function* notifications(
  { system }: Service,
  mailbox: MailboxRef,
  head: number
): AsyncGenerator<ExportLine> {
  let next = 1
  while (next <= head) {
    const items = await run(system.read(mailbox.to, next, exportPage))
    for (const item of items) {
      if (isRemoval(item.value)) continue
      const stored = entryOf(item)
      const entry = { ...stored, fragment: withoutSecret(stored.fragment) }
      yield {
        kind: "notification",
        href: `${mailbox.href}/notifications/${entry.id}`,
        xml: entryXml(mailbox, entry)
      }
    }
    const last = items.at(-1)
    if (last === undefined) return
    next = last.n + 1
  }
}

/** A mailbox and what is in it; nothing if it is another account's. */
export async function* exportedMailbox(
  service: Service,
  account: string,
  { id }: OwnedEntry
): AsyncGenerator<ExportLine> {
  const mailbox = mailboxRefNamed(service, id)
  const view = await run(describeMailbox(service, mailbox, account))
  if (isRefusal(view) || !view.isOwner) return
  const { href } = mailbox
  yield { kind: "mailbox", href, xml: writeElement(mailboxDocument(href, view.settings)) }
  yield* blocks(service, mailbox, account)
  yield* registrations(service, mailbox, account)
  yield* notifications(service, mailbox, view.head)
}
