/** The decisions of a cabinet: its owner, its list of mailboxes and its query (protocol §1.5). */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { cabinetMailboxesMax } from "../limits.ts"
import { deny, denyEach, isOutdated, notOwner } from "../refusals.ts"
import type { CabinetContent, CabinetMessage, CabinetReply, CabinetState,
  CabinetView } from "./protocol.ts"

type Active = Variant<CabinetState, "Active">

type Cabinets = BehaviorTable<CabinetState, CabinetMessage, CabinetReply>

export const cabinetTable: Cabinets = {
  Absent: {
    Create: (_state, { contents, owner, requestId }, { nowMs }) => {
      const refusal = invalidContents(contents)
      if (refusal !== undefined) return refusal
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
    ...denyEach("NotFound", "Describe", "Replace", "Remove"),
    TimerFired: () => stay()
  },
  Active: {
    Create: (state, { owner, requestId }) =>
      requestId === state.requestId && owner === state.owner
        ? stay().reply<CabinetReply>({ _tag: "Created", view: view(state) })
        : deny("Taken"),
    Describe: (state, { caller }) => {
      const reason = notOwner(state.owner, caller, false)
      return reason === undefined
        ? stay().reply<CabinetReply>({ _tag: "Described", view: view(state) })
        : deny(reason)
    },
    Replace: (state, message) => {
      const reason = notOwner(state.owner, message.caller, false)
      if (reason !== undefined) return deny(reason)
      const { requestId } = message
      if (isOutdated(state, message)) {
        return requestId !== undefined && requestId === state.replacedBy
          ? stay().reply<CabinetReply>({ _tag: "Replaced", view: view(state) })
          : deny("PreconditionFailed")
      }
      const refusal = invalidContents(message.contents)
      if (refusal !== undefined) return refusal
      const { mailboxes: _mailboxes, query: _query, title: _title, ...rest } = state
      const next: Active = {
        ...rest,
        ...withSecrets(message.contents, state),
        version: state.version + 1,
        ...requestId === undefined ? {} : { replacedBy: requestId }
      }
      return become<CabinetState>(next).reply<CabinetReply>({ _tag: "Replaced", view: view(next) })
    },
    Remove: (state, message) => {
      const reason = notOwner(state.owner, message.caller, true)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      return become<CabinetState>({ _tag: "Removed" }).reply<CabinetReply>({ _tag: "Done" })
    },
    TimerFired: () => stay()
  },
  Removed: {
    ...denyEach("Gone", "Create", "Describe", "Replace", "Remove"),
    TimerFired: () => stay()
  }
}

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

/** The refusal of invalid contents; undefined if they are valid. */
const invalidContents = ({ mailboxes }: CabinetContent): Decision<never> | undefined => {
  if (mailboxes.length === 0) return deny("Invalid", "a cabinet has at least one mailbox")
  if (mailboxes.length > cabinetMailboxesMax) {
    return deny("Invalid", `a cabinet has at most ${cabinetMailboxesMax} mailboxes`)
  }
  return new Set(mailboxes.map(({ name }) => name)).size < mailboxes.length
    ? deny("Invalid", "a cabinet lists each mailbox once")
    : undefined
}

/** The new contents. A mailbox without a secret keeps the one that the state has. */
const withSecrets = (contents: CabinetContent, { mailboxes }: Active): CabinetContent => ({
  ...contents,
  mailboxes: contents.mailboxes.map((mailbox) =>
    mailbox.secretHash === undefined
      ? mailboxes.find(({ name }) => name === mailbox.name) ?? mailbox
      : mailbox
  )
})
