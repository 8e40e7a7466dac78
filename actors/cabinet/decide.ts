/** What a cabinet decides: whose it is, and which list and query it holds (protocol §1.5). */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { cabinetMailboxesMax } from "../limits.ts"
import { deny, isOutdated, type Reason } from "../refusals.ts"
import type { Caller } from "../schemas.ts"
import type { CabinetContent, CabinetMessage, CabinetReply, CabinetState,
  CabinetView } from "./protocol.ts"

type Active = Variant<CabinetState, "Active">

type Cabinets = BehaviorTable<CabinetState, CabinetMessage, CabinetReply>

const view = (state: Active): CabinetView => {
  const { createdAtMs, mailboxes, owner, query, title, version } = state
  return {
    owner,
    createdAtMs,
    version,
    mailboxes,
    ...title === undefined ? {} : { title },
    ...query === undefined ? {} : { query }
  }
}

/** Why the caller may not do it; undefined when it may. */
const notOwner = (
  state: Active,
  { account, admin }: Caller,
  orAdmin: boolean
): Reason | undefined =>
  account === state.owner || (orAdmin && admin)
    ? undefined
    : account === undefined
    ? "Unauthenticated"
    : "Forbidden"

/** Why these are no contents; undefined when they are. */
const unfit = ({ mailboxes }: CabinetContent): Decision<never> | undefined => {
  if (mailboxes.length === 0) return deny("Invalid", "a cabinet has one mailbox or more")
  if (mailboxes.length > cabinetMailboxesMax) {
    return deny("Invalid", `a cabinet has ${cabinetMailboxesMax} mailboxes at the most`)
  }
  return new Set(mailboxes.map(({ name }) => name)).size < mailboxes.length
    ? deny("Invalid", "a cabinet has each mailbox once")
    : undefined
}

/** The new list, with the rights that the old one had where the new one brings none. */
const withRights = (contents: CabinetContent, { mailboxes }: Active): CabinetContent => ({
  ...contents,
  mailboxes: contents.mailboxes.map((mailbox) =>
    mailbox.secretHash === undefined
      ? mailboxes.find(({ name }) => name === mailbox.name) ?? mailbox
      : mailbox
  )
})

const active: Cabinets["Active"] = {
  Create: (state, { owner, requestId }) =>
    requestId === state.requestId && owner === state.owner
      ? stay().reply<CabinetReply>({ _tag: "Created", view: view(state) })
      : deny("Taken"),
  Describe: (state, { caller }) => {
    const reason = notOwner(state, caller, false)
    return reason === undefined
      ? stay().reply<CabinetReply>({ _tag: "Described", view: view(state) })
      : deny(reason)
  },
  Replace: (state, message) => {
    const reason = notOwner(state, message.caller, false)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    const fault = unfit(message.contents)
    if (fault !== undefined) return fault
    const { createdAtMs, owner, requestId, version } = state
    const next: Active = {
      _tag: "Active",
      owner,
      requestId,
      createdAtMs,
      ...withRights(message.contents, state),
      version: version + 1
    }
    return become<CabinetState>(next).reply<CabinetReply>({ _tag: "Replaced", view: view(next) })
  },
  Remove: (state, message) => {
    const reason = notOwner(state, message.caller, true)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    return become<CabinetState>({ _tag: "Removed" }).reply<CabinetReply>({
      _tag: "Done",
      owner: state.owner
    })
  },
  TimerFired: () => stay()
}

export const cabinetTable: Cabinets = {
  Absent: {
    Create: (_state, { contents, owner, requestId }, { nowMs }) => {
      const fault = unfit(contents)
      if (fault !== undefined) return fault
      const next: Active = {
        _tag: "Active",
        owner,
        requestId,
        createdAtMs: nowMs,
        ...contents,
        version: 1
      }
      return become<CabinetState>(next).reply<CabinetReply>({ _tag: "Created", view: view(next) })
    },
    Describe: () => deny("NotFound"),
    Replace: () => deny("NotFound"),
    Remove: () => deny("NotFound"),
    TimerFired: () => stay()
  },
  Active: active,
  Removed: {
    Create: () => deny("Gone"),
    Describe: () => deny("Gone"),
    Replace: () => deny("Gone"),
    Remove: () => deny("Gone"),
    TimerFired: () => stay()
  }
}
