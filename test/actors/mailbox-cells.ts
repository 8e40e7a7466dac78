/** A mailbox and messages to it, for the tests of its table. */
import type { Block } from "../../actors/blocks.ts"
import { mailboxTable } from "../../actors/mailbox/decide.ts"
import type { MailboxAction, MailboxMessage, MailboxReply,
  MailboxState } from "../../actors/mailbox/protocol.ts"
import { nothingWaiting } from "../../actors/mailbox/waiting-bytes.ts"
import { address, type Variant } from "../../runtime/index.ts"
import { decider, hash, nowMs } from "./cells.ts"
import { defaultSettings } from "./mailbox-settings.ts"

export const table = mailboxTable({ notificationsMax: 3, anonymousBytesMax: 1e9 })
export const decide = decider<MailboxState, MailboxMessage, MailboxReply, MailboxAction>(table)
export const ms30Days = defaultSettings.retentionMs

export const absent: MailboxState = { _tag: "Absent" }
export const open: Variant<MailboxState, "Open"> = {
  _tag: "Open",
  owner: "alice",
  requestId: "r1",
  createdAtMs: nowMs - 10,
  settings: defaultSettings,
  passwordHash: hash("password"),
  sharedHash: hash("shared"),
  version: 1,
  secretsVersion: 0,
  lastAtMs: nowMs - 5,
  removed: 0,
  gone: [],
  removedLocalDeliveries: [],
  retrieved: [],
  registrations: [],
  browserOrigins: [],
  events: 0,
  fetched: 0,
  inlined: 0,
  waiting: nothingWaiting,
  blocks: [],
  webhookSecret: null,
  read: []
}
/** A block of an account. */
export const block: Block = {
  id: "block".padEnd(22, "_"),
  kind: "account",
  value: "mordred",
  atMs: nowMs
}

export const destroyed: Variant<MailboxState, "Destroyed"> = {
  _tag: "Destroyed",
  destroyedAtMs: nowMs,
  left: [],
  fetched: 0,
  inlined: 0
}

export const create: Variant<MailboxMessage, "Create"> = {
  _tag: "Create",
  requestId: "r1",
  owner: "alice",
  settings: defaultSettings,
  passwordHash: hash("password"),
  sharedHash: hash("shared")
}
export const checkCreate = { _tag: "CheckCreate", requestId: "r1", owner: "alice" } as const
export const part = (of: string): string => of.padEnd(22, "_")
export const deposit = {
  _tag: "Deposit",
  fragment: "<item/>",
  digest: part("digest"),
  idRandom: part("random")
} as const
/** The edition that `replace` follows. */
export const earlier = { digest: part("earlier"), idRandom: part("_earlier") }
export const replace: Variant<MailboxMessage, "Replace"> = {
  _tag: "Replace",
  fragment: "<item>2</item>",
  digest: part("second"),
  idRandom: part("_second"),
  account: "bob",
  isWithdrawal: false,
  earlier: [earlier]
}
export const alice = { account: "alice", admin: false }
export const bob = { account: "bob", admin: false }
export const nobody = { admin: false }
export const list = (reader: Variant<MailboxMessage, "List">["reader"]): MailboxMessage => ({
  _tag: "List",
  reader
})
export const describeIt: MailboxMessage = { _tag: "Describe", reader: {} }
export const retrieved = (from: number, to: number): MailboxMessage => ({
  _tag: "Retrieved",
  from,
  to
})
export const remove = (n: number): Variant<MailboxMessage, "Remove"> => ({
  _tag: "Remove",
  n,
  idRandom: part(`random${n}`),
  reader: { account: "alice" }
})
export const register: Variant<MailboxMessage, "Register"> = {
  _tag: "Register",
  id: "alice=registration-1",
  reader: { account: "alice" }
}
export const unregister: MailboxMessage = { _tag: "Unregister", id: "alice=registration-1" }
export const readHead: Variant<MailboxMessage, "ReadHead"> = {
  _tag: "ReadHead",
  id: "alice=registration-1"
}
export const registrations = (
  reader: Variant<MailboxMessage, "List">["reader"]
): MailboxMessage => ({
  _tag: "Registrations",
  reader
})
export const markRead = (
  from: number,
  to: number,
  reader: Variant<MailboxMessage, "List">["reader"] = { account: "alice" }
): MailboxMessage => ({ _tag: "MarkRead", from, to, reader })
export const markUnread = (
  n: number,
  reader: Variant<MailboxMessage, "List">["reader"] = { account: "alice" }
): MailboxMessage => ({ _tag: "MarkUnread", n, reader })
export const fetched: MailboxMessage = { _tag: "CopiesChanged" }
export const checkNotification = (n: number): MailboxMessage => ({
  _tag: "CheckNotification",
  n
})
export const expire = (found: Partial<Variant<MailboxMessage, "Expire">>): MailboxMessage => ({
  _tag: "Expire",
  removed: [],
  events: [],
  missing: [],
  ...found
})
export const self = address("mailbox", "alice")
/** One that somebody is registered with, and whose notifications have copies. */
export const watched: Variant<MailboxState, "Open"> = {
  ...open,
  registrations: ["registration-1"],
  fetched: 1
}
export const registrationSignal = (hint?: number) => ({
  address: address("registration", "alice=registration-1"),
  ...hint === undefined ? {} : { hint }
})
export const taskSignal = (id: string) => ({
  address: address("background-task", `alice=${id}`)
})
export const configure: Variant<MailboxMessage, "Configure"> = {
  _tag: "Configure",
  caller: alice,
  settings: { ...defaultSettings, title: "Post" }
}
export const changeSecrets: Variant<MailboxMessage, "ChangeSecrets"> = {
  _tag: "ChangeSecrets",
  caller: alice,
  passwordHash: hash("p2"),
  sharedHash: hash("s2")
}
export const destroy: Variant<MailboxMessage, "Destroy"> = { _tag: "Destroy", caller: alice }
export const timerFired: MailboxMessage = { _tag: "TimerFired" }
export const done = { _tag: "Done" }
