/**
 * What an account decides. A name is never given again, since what its first bearer owned would
 * be the next one's; and the founder stays an admin, so that there always is one.
 */
import { become, stay } from "../../runtime/index.ts"
import type { Decision, Member, Table } from "../../runtime/index.ts"
import type { Caller } from "../binding.ts"
import { accountTokensMax } from "../limits.ts"
import { deny, isOutdated } from "../reasons.ts"
import type { Reason } from "../reasons.ts"
import type { Message, Reply, State, Token, View } from "./protocol.ts"

type Active = Member<State, "Active">
type Accounts = Table<State, Message, Reply>

const done: Reply = { _tag: "Done" }

const view = (state: Active): View => ({
  name: state.name,
  roles: state.roles,
  createdAtMs: state.createdAtMs,
  tokens: state.tokens.map(({ id, createdAtMs }) => ({ id, createdAtMs })),
  founder: state.founder,
  version: state.version
})

/** Why the caller is no admin; undefined when it is one. */
const notAdmin = ({ account, admin }: Caller): Reason | undefined =>
  admin ? undefined : account === undefined ? "Unauthenticated" : "Forbidden"

/** Why the caller is neither the account itself nor an admin; undefined when it is. */
const notSelf = (state: Active, caller: Caller): Reason | undefined =>
  caller.account === state.name ? undefined : notAdmin(caller)

const changed = (state: Active, change: Partial<Active>): Decision<State, Reply> =>
  become<State>({ ...state, ...change, version: state.version + 1 }).reply(done)

const absent: Accounts["Absent"] = {
  Bootstrap: (_state, { name, tokenId, tokenHash }, { nowMs }) =>
    become<State>({
      _tag: "Active",
      name,
      requestId: "",
      createdAtMs: nowMs,
      roles: ["admin"],
      tokens: [{ id: tokenId, hash: tokenHash, createdAtMs: nowMs }],
      founder: true,
      version: 1
    }).reply<Reply>({ _tag: "Bootstrapped", created: true, tokenKept: true }),
  Create: (_state, message, { nowMs }) => {
    const reason = notAdmin(message.caller)
    if (reason !== undefined) return deny(reason)
    const { requestId, name, roles, tokenId, tokenHash } = message
    const active: Active = {
      _tag: "Active",
      name,
      requestId,
      createdAtMs: nowMs,
      roles,
      tokens: [{ id: tokenId, hash: tokenHash, createdAtMs: nowMs }],
      founder: false,
      version: 1
    }
    return become<State>(active)
      .reply<Reply>({ _tag: "Created", view: view(active), repeated: false })
  },
  Describe: () => deny("NotFound"),
  Authenticate: () => deny("Unauthenticated"),
  AddToken: () => deny("NotFound"),
  RemoveToken: () => deny("NotFound"),
  SetRoles: () => deny("NotFound"),
  Remove: () => deny("NotFound"),
  WakeUp: () => stay()
}

const bootstrap: Accounts["Active"]["Bootstrap"] = (state, message, { nowMs }) => {
  const { tokenId, tokenHash, enforced } = message
  if (state.tokens.some(({ hash }) => hash === tokenHash)) {
    return stay().reply<Reply>({ _tag: "Bootstrapped", created: false, tokenKept: true })
  }
  if (!enforced) {
    return stay().reply<Reply>({ _tag: "Bootstrapped", created: false, tokenKept: false })
  }
  // The operator's word goes before the bound: the oldest of the others gives way.
  const others = state.tokens.filter(({ id }) => id !== tokenId).slice(1 - accountTokensMax)
  const tokens = [...others, { id: tokenId, hash: tokenHash, createdAtMs: nowMs }]
  return become<State>({ ...state, tokens, version: state.version + 1 })
    .reply<Reply>({ _tag: "Bootstrapped", created: false, tokenKept: true })
}

const addToken: Accounts["Active"]["AddToken"] = (state, message, { nowMs }) => {
  const { caller, tokenId, tokenHash, replacesAll } = message
  const reason = notSelf(state, caller)
  if (reason !== undefined) return deny(reason)
  // The same token again is a repeated message.
  if (state.tokens.some(({ id, hash }) => id === tokenId && hash === tokenHash)) {
    return stay().reply(done)
  }
  const others: ReadonlyArray<Token> = replacesAll ? [] : state.tokens
  if (others.some(({ id }) => id === tokenId)) return deny("Taken", "there is a token of this id")
  if (others.length >= accountTokensMax) {
    return deny("Full", `an account has at most ${accountTokensMax} tokens`)
  }
  return changed(state, {
    tokens: [...others, { id: tokenId, hash: tokenHash, createdAtMs: nowMs }]
  })
}

const active: Accounts["Active"] = {
  Bootstrap: bootstrap,
  Create: (state, { caller, requestId }) => {
    const reason = notAdmin(caller)
    if (reason !== undefined) return deny(reason)
    return requestId === state.requestId && !state.founder
      ? stay().reply<Reply>({ _tag: "Created", view: view(state), repeated: true })
      : deny("Taken")
  },
  Describe: (state, { caller }) => {
    const reason = notSelf(state, caller)
    return reason === undefined
      ? stay().reply<Reply>({ _tag: "Described", view: view(state) })
      : deny(reason)
  },
  // Plain comparison of hashes is enough: whoever guesses does not choose the guess's hash.
  Authenticate: (state, { tokenHash }) =>
    state.tokens.some(({ hash }) => hash === tokenHash)
      ? stay().reply<Reply>({ _tag: "Authenticated", account: state.name, roles: state.roles })
      : deny("Unauthenticated"),
  AddToken: addToken,
  RemoveToken: (state, message) => {
    const { caller, tokenId } = message
    const reason = notSelf(state, caller)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    const tokens = state.tokens.filter(({ id }) => id !== tokenId)
    return tokens.length === state.tokens.length ? deny("NotFound") : changed(state, { tokens })
  },
  SetRoles: (state, { caller, roles }) => {
    const reason = notAdmin(caller)
    if (reason !== undefined) return deny(reason)
    return state.founder && !roles.includes("admin")
      ? deny("LastAdmin", "this account stays an admin")
      : changed(state, { roles })
  },
  Remove: (state, message) => {
    const reason = notAdmin(message.caller)
    if (reason !== undefined) return deny(reason)
    if (isOutdated(state, message)) return deny("PreconditionFailed")
    return state.founder
      ? deny("LastAdmin", "this account cannot be removed")
      : become<State>({ _tag: "Removed" }).reply(done)
  },
  WakeUp: () => stay()
}

const removed: Accounts["Removed"] = {
  Bootstrap: () => deny("Gone"),
  Create: () => deny("Taken", "an account of this name was removed; names are not given again"),
  Describe: () => deny("Gone"),
  Authenticate: () => deny("Unauthenticated"),
  AddToken: () => deny("Gone"),
  RemoveToken: () => deny("Gone"),
  SetRoles: () => deny("Gone"),
  Remove: () => deny("Gone"),
  WakeUp: () => stay()
}

export const accountTable: Accounts = { Absent: absent, Active: active, Removed: removed }
