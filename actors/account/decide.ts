/**
 * The decisions of an account. A name is never reused: a second account of the name would own what
 * the first one owned. The founder remains an admin, so that there is always one. An expired token
 * is invalid at once. A timer removes its records, and then the account removes it from its state.
 */
import { become, type BehaviorTable, type Decision, stay,
  type Variant } from "../../runtime/index.ts"
import { admitFailureReport, withReportsMailbox } from "../failure-reports/index.ts"
import { accountTokensMax, browserSessionIdleMs, browserSessionLifetimeMs, browserSessionsMax,
  browserSessionTouchMs, tokenRemovalRetryMs, tokenUseIntervalMs } from "../limits.ts"
import { deny, denyEach, isOutdated, notOwner, type Reason } from "../refusals.ts"
import type { Caller } from "../schemas.ts"
import { sameHash } from "../secret-hash.ts"
import { countOneMore } from "./change-budget.ts"
import { ownedCells, ownedText, startOwnedRemoval } from "./owned-removal.ts"
import { type AccountAction, type AccountMessage, type AccountReply, type AccountState,
  type AccountView, type BrowserSession, type BrowserSessionView, type Token, type TokenRights,
  type TokenView, tooManyTokens } from "./protocol.ts"

type Active = Variant<AccountState, "Active">

type Accounts = BehaviorTable<AccountState, AccountMessage, AccountReply, AccountAction>

const done: AccountReply = { _tag: "Done" }

const isValid = ({ expiresAtMs }: Token, nowMs: number): boolean =>
  expiresAtMs === undefined || nowMs < expiresAtMs

const tokenView = ({ hash: _hash, ...token }: Token): TokenView => token

const browserSessionEndMs = ({ createdAtMs, usedAtMs }: BrowserSession): number =>
  Math.min(usedAtMs + browserSessionIdleMs, createdAtMs + browserSessionLifetimeMs)

/** The valid token that a browser was signed in with; undefined if the session has ended. */
const tokenOfSession = (
  state: Active,
  session: BrowserSession,
  nowMs: number
): Token | undefined =>
  nowMs < browserSessionEndMs(session)
    ? validToken(state, session.tokenHash, nowMs)
    : undefined

/** The sessions of browsers that have not ended. */
const liveSessions = (state: Active, nowMs: number): ReadonlyArray<BrowserSession> =>
  (state.browserSessions ?? []).filter((session) =>
    tokenOfSession(state, session, nowMs) !== undefined
  )

const browserSessionViews = (state: Active, nowMs: number): ReadonlyArray<BrowserSessionView> =>
  (state.browserSessions ?? []).flatMap((session) => {
    const token = tokenOfSession(state, session, nowMs)
    const { hash: _hash, tokenHash: _tokenHash, ...shown } = session
    return token === undefined
      ? []
      : [{ ...shown, tokenId: token.id, expiresAtMs: browserSessionEndMs(session) }]
  })

const view = (state: Active, nowMs: number): AccountView => ({
  name: state.name,
  roles: state.roles,
  createdAtMs: state.createdAtMs,
  tokens: state.tokens.filter((token) => isValid(token, nowMs)).map(tokenView),
  browserSessions: browserSessionViews(state, nowMs),
  version: state.version,
  failureReports: state.failureReports?.mailbox,
  ...state.failureReports === undefined ? { reportsUndecided: true } : {}
})

/** Why a caller is refused that is not an admin; undefined for an admin. */
const notAdmin = ({ account, admin }: Caller): Reason | undefined =>
  admin ? undefined : account === undefined ? "Unauthenticated" : "Forbidden"

/** Revoked tokens stay until the timer has removed their records, as expired ones do. */
const revoke = (
  tokens: ReadonlyArray<Token>,
  revoked: ReadonlyArray<string>
): ReadonlyArray<Token> =>
  tokens.map((token) => revoked.includes(token.id) ? { ...token, expiresAtMs: 0 } : token)

/** When the first of the tokens and the sessions of browsers ends; null if none ends. */
const firstEnd = ({ browserSessions = [], tokens }: Active): number | null => {
  const times = [
    ...tokens.flatMap(({ expiresAtMs }) => expiresAtMs === undefined ? [] : [expiresAtMs]),
    ...browserSessions.map(browserSessionEndMs)
  ]
  return times.length === 0 ? null : Math.min(...times)
}

/** Stores a change of what the account's view shows. */
const changed = (state: Active, change: Partial<Active>): Decision<AccountState, AccountReply> =>
  changedWithin(state, { ...change, version: state.version + 1 })

/** Stores a change. Sets the timer if something else is now the first to end. */
const changedWithin = (
  state: Active,
  change: Partial<Active>
): Decision<AccountState, AccountReply> => {
  const next: Active = { ...state, ...change }
  const decision = become<AccountState>(next).reply(done)
  const [before, atMs] = [firstEnd(state), firstEnd(next)]
  return before === atMs ? decision : decision.setTimer(atMs)
}

const tokenFrom = (
  message: TokenRights & {
    readonly tokenId: string
    readonly tokenHash: string
    readonly label?: string
    readonly expiresAtMs?: number
  },
  createdAtMs: number
): Token => {
  const { expiresAtMs, label, mailbox, scopes, tokenHash, tokenId } = message
  return {
    id: tokenId,
    hash: tokenHash,
    createdAtMs,
    ...label === undefined ? {} : { label },
    ...expiresAtMs === undefined ? {} : { expiresAtMs },
    ...scopes === undefined ? {} : { scopes },
    ...mailbox === undefined ? {} : { mailbox }
  }
}

/** The valid token of a hash. */
const validToken = ({ tokens }: Active, tokenHash: string, nowMs: number): Token | undefined =>
  tokens.find((token) => sameHash(token.hash, tokenHash) && isValid(token, nowMs))

const isUseDue = ({ usedAtMs }: Token, nowMs: number): boolean =>
  usedAtMs === undefined || nowMs - usedAtMs >= tokenUseIntervalMs

const authenticatedBy = (state: Active, token: Token, isDue: boolean): AccountReply => ({
  _tag: "Authenticated",
  account: state.name,
  roles: state.roles,
  token: tokenView(token),
  isUseDue: isDue
})

const authenticate: Accounts["Active"]["Authenticate"] = (state, { tokenHash }, { nowMs }) => {
  const token = validToken(state, tokenHash, nowMs)
  return token === undefined
    ? deny("Unauthenticated")
    : stay().reply(authenticatedBy(state, token, isUseDue(token, nowMs)))
}

/** The version stays: a use is no reason to refuse a conditional change. */
const recordUse: Accounts["Active"]["RecordUse"] = (state, { tokenHash }, { nowMs }) => {
  const used = validToken(state, tokenHash, nowMs)
  if (used === undefined || !isUseDue(used, nowMs)) return stay().reply(done)
  const tokens = state.tokens.map((token) => token === used ? { ...used, usedAtMs: nowMs } : token)
  return become<AccountState>({ ...state, tokens }).reply(done)
}

/** The version stays: the count is in no view. */
const countChange: Accounts["Active"]["CountChange"] = (state, message, { nowMs }) => {
  const budget = countOneMore(state.changes, message.kind, nowMs)
  if (budget._tag === "Spent") {
    const { count, untilMs } = budget
    return stay().reply<AccountReply>({ _tag: "ChangesSpent", count, untilMs })
  }
  return become<AccountState>({ ...state, changes: budget.changes })
    .reply<AccountReply>({ _tag: "ChangeCounted" })
}

const bootstrap: Accounts["Active"]["Bootstrap"] = (state, message, { nowMs }) => {
  const { tokenId, tokenHash, enforced } = message
  if (state.tokens.some((token) => sameHash(token.hash, tokenHash) && isValid(token, nowMs))) {
    return stay().reply<AccountReply>({ _tag: "Bootstrapped", created: false, tokenKept: true })
  }
  if (!enforced) {
    return stay().reply<AccountReply>({ _tag: "Bootstrapped", created: false, tokenKept: false })
  }
  // The account always keeps the operator's token. If it has too many, the oldest other is removed.
  const others = state.tokens.filter(({ id }) => id !== tokenId)
  const invalid = others.filter((token) => !isValid(token, nowMs))
  const valid = others.filter((token) => isValid(token, nowMs)).slice(1 - accountTokensMax)
  // A removal of its records may be under way: it is repeated, and then keeps those of the new one.
  const revoked = state.tokens.filter((token) => token.id === tokenId && !isValid(token, nowMs))
    .slice(-1)
  const added = { id: tokenId, hash: tokenHash, createdAtMs: nowMs }
  const tokens = [...invalid, ...revoked, ...valid, added]
  return become<AccountState>({ ...state, tokens, version: state.version + 1 })
    .reply<AccountReply>({ _tag: "Bootstrapped", created: false, tokenKept: true })
}

const addToken: Accounts["Active"]["AddToken"] = (state, message, { nowMs }) => {
  const { caller, tokenId, tokenHash } = message
  const { name, tokens } = state
  const reason = notOwner(name, caller, true)
  if (reason !== undefined) return deny(reason)
  const existing = tokens.find(({ id }) => id === tokenId)
  if (existing !== undefined && isValid(existing, nowMs)) {
    // A repeated message has the same token.
    return existing.hash === tokenHash
      ? stay().reply(done)
      : deny("Taken", "the account already has a token with this id")
  }
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  if (existing !== undefined) {
    return deny("Gone", "the token was revoked or has expired: create another one")
  }
  const valid = tokens.filter((token) => isValid(token, nowMs)).length
  // A timer removes expired tokens. Until then their number is bounded too.
  if (valid >= accountTokensMax || tokens.length >= 2 * accountTokensMax) {
    return deny("Full", tooManyTokens)
  }
  return changed(state, { tokens: [...tokens, tokenFrom(message, nowMs)] })
}

/** Removes the records of all invalid tokens, and writes those of `kept`. */
const removeRecords = (state: Active, kept: ReadonlyArray<Token>, nowMs: number) => {
  const recorded = ({ hash, id }: Token) => ({ id, hash })
  return stay<AccountState>().setTimer(nowMs + tokenRemovalRetryMs).perform<AccountAction>({
    _tag: "RemoveTokenRecords",
    account: state.name,
    tokens: state.tokens.filter((token) => !isValid(token, nowMs)).map(recorded),
    kept: kept.map(recorded)
  })
}

/** The valid tokens of these ids: the operator's token gets its id again after a revocation. */
const validTokens = (
  { tokens }: Active,
  ids: ReadonlyArray<string>,
  nowMs: number
): ReadonlyArray<Token> => tokens.filter((token) => ids.includes(token.id) && isValid(token, nowMs))

const timerFired: Accounts["Active"]["TimerFired"] = (state, _message, { nowMs }) => {
  const expired = state.tokens.filter((token) => !isValid(token, nowMs))
  if (expired.length === 0) {
    const browserSessions = liveSessions(state, nowMs)
    const next = { ...state, browserSessions }
    return browserSessions.length === (state.browserSessions ?? []).length
      ? stay<AccountState>().setTimer(firstEnd(state))
      : become<AccountState>(next).setTimer(firstEnd(next))
  }
  return removeRecords(state, validTokens(state, expired.map(({ id }) => id), nowMs), nowMs)
}

const tokenRecordsRemoved: Accounts["Active"]["TokenRecordsRemoved"] = (
  state,
  { keptHashes = [], tokenIds },
  { nowMs }
) => {
  const valid = validTokens(state, tokenIds, nowMs)
  // The removal began before these tokens were valid, and has deleted their records.
  if (valid.some(({ hash }) => !keptHashes.includes(hash))) {
    return removeRecords(state, valid, nowMs)
  }
  const tokens = state.tokens.filter((token) =>
    isValid(token, nowMs) || !tokenIds.includes(token.id)
  )
  if (tokens.length === state.tokens.length) return stay()
  const { browserSessions } = state
  const next: Active = {
    ...state,
    tokens,
    version: state.version + 1,
    ...browserSessions === undefined ? {} : { browserSessions: liveSessions(state, nowMs) }
  }
  return become<AccountState>(next).setTimer(firstEnd(next))
}

/* Failure reports. */

const chooseReportsMailbox: Accounts["Active"]["ChooseReportsMailbox"] = (state, message) => {
  const { caller, mailbox } = message
  const reason = notOwner(state.name, caller, true)
  if (reason !== undefined) return deny(reason)
  // A repetition finds its change, also where it expects the version before.
  const { failureReports } = state
  if (failureReports !== undefined && mailbox === failureReports.mailbox) return stay().reply(done)
  if (isOutdated(state, message)) return deny("PreconditionFailed")
  return changed(state, { failureReports: withReportsMailbox(failureReports, mailbox) })
}

/** The version stays: no view has what was admitted. */
const admitReport: Accounts["Active"]["AdmitFailureReport"] = (state, message, { nowMs }) => {
  const { next, reply } = admitFailureReport(state.failureReports, message, nowMs)
  return next === undefined
    ? stay().reply<AccountReply>(reply)
    : become<AccountState>({ ...state, failureReports: next }).reply<AccountReply>(reply)
}

/* Browsers that are signed in. Their changes leave the version: no view with a version has them. */

const addBrowserSession: Accounts["Active"]["AddBrowserSession"] = (state, message, { nowMs }) => {
  const { agent, from, sessionHash: hash, sessionId: id, tokenHash } = message
  const live = liveSessions(state, nowMs)
  const existing = live.find((session) => session.id === id)
  // A repeated message has the same secret.
  if (existing !== undefined && !sameHash(existing.hash, hash)) return deny("Taken")
  const token = validToken(state, tokenHash, nowMs)
  if (token === undefined) return deny("Unauthenticated")
  const reply = authenticatedBy(state, token, false)
  if (existing !== undefined) return stay().reply(reply)
  const added = { id, hash, tokenHash, createdAtMs: nowMs, usedAtMs: nowMs, from, agent }
  const browserSessions = [...live, added].slice(-browserSessionsMax)
  return changedWithin(state, { browserSessions }).reply(reply)
}

const authenticateBrowser: Accounts["Active"]["AuthenticateBrowser"] = (
  state,
  { sessionHash, sessionId },
  { nowMs }
) => {
  const session = liveSessions(state, nowMs).find(({ hash, id }) =>
    id === sessionId && sameHash(hash, sessionHash)
  )
  const token = session === undefined ? undefined : tokenOfSession(state, session, nowMs)
  return session === undefined || token === undefined
    ? deny("Unauthenticated")
    : stay().reply(
      authenticatedBy(state, token, nowMs - session.usedAtMs >= browserSessionTouchMs)
    )
}

const touchBrowserSession: Accounts["Active"]["TouchBrowserSession"] = (
  state,
  { sessionId },
  { nowMs }
) => {
  const live = liveSessions(state, nowMs)
  const used = live.find(({ id, usedAtMs }) =>
    id === sessionId && nowMs - usedAtMs >= browserSessionTouchMs
  )
  if (used === undefined) return stay().reply(done)
  return changedWithin(state, {
    tokens: state.tokens.map((token) =>
      sameHash(token.hash, used.tokenHash) ? { ...token, usedAtMs: nowMs } : token
    ),
    browserSessions: live.map((session) =>
      session.id === sessionId ? { ...session, usedAtMs: nowMs } : session
    )
  })
}

/** Ends one session of a browser, or all without an id. */
const endSessions = (
  state: Active,
  caller: Caller,
  nowMs: number,
  sessionId?: string
): Decision<AccountState, AccountReply> => {
  const reason = notOwner(state.name, caller, true)
  if (reason !== undefined) return deny(reason)
  const live = liveSessions(state, nowMs)
  const browserSessions = sessionId === undefined ? [] : live.filter(({ id }) => id !== sessionId)
  if (browserSessions.length < live.length) return changedWithin(state, { browserSessions })
  return sessionId === undefined ? stay().reply(done) : deny("NotFound")
}

/** The cells that are equal before an account is created and after it is removed. */
const withoutAccount = (reason: "NotFound" | "Gone") => ({
  ...denyEach(reason, "Describe", "AddToken", "RemoveToken", "RemoveTokens", "Remove"),
  ...denyEach(reason, "ChooseReportsMailbox", "AdmitFailureReport"),
  ...denyEach(reason, "TouchBrowserSession", "RemoveBrowserSession", "RemoveBrowserSessions"),
  ...denyEach("Unauthenticated", "Authenticate", "AddBrowserSession", "AuthenticateBrowser"),
  // Its request was authenticated just before the account was removed.
  CountChange: () => deny("Unauthenticated", "the account was removed"),
  RecordUse: () => stay().reply(done),
  TokenRecordsRemoved: () => stay()
})

const newAccount = (
  name: string,
  createdAtMs: number,
  properties: Partial<Pick<Active, "requestId" | "roles" | "tokens" | "founder">>
): Active => ({
  _tag: "Active",
  name,
  requestId: "",
  createdAtMs,
  roles: [],
  tokens: [],
  founder: false,
  version: 1,
  ...properties
})

export const accountTable: Accounts = {
  Absent: {
    ...withoutAccount("NotFound"),
    OwnedRemoved: () => stay(),
    TimerFired: () => stay(),
    Bootstrap: (_state, { name, tokenId, tokenHash }, { nowMs }) => {
      const tokens = [{ id: tokenId, hash: tokenHash, createdAtMs: nowMs }]
      return become<AccountState>(
        newAccount(name, nowMs, { roles: ["admin"], tokens, founder: true })
      )
        .reply<AccountReply>({ _tag: "Bootstrapped", created: true, tokenKept: true })
    },
    Create: (_state, message, { nowMs }) => {
      const reason = notAdmin(message.caller)
      if (reason !== undefined) return deny(reason)
      const { name, reportsMailbox, requestId, roles } = message
      const account = newAccount(name, nowMs, {
        requestId,
        roles,
        tokens: [tokenFrom(message, nowMs)],
        ...reportsMailbox === undefined
          ? {}
          : { failureReports: withReportsMailbox(undefined, reportsMailbox ?? undefined) }
      })
      const decision = become<AccountState>(account)
        .reply<AccountReply>({ _tag: "Created", view: view(account, nowMs), repeated: false })
      const endMs = firstEnd(account)
      return endMs === null ? decision : decision.setTimer(endMs)
    },
    Admit: (_state, { name }, { nowMs }) =>
      become<AccountState>(newAccount(name, nowMs, {})).reply<AccountReply>({ _tag: "Admitted" })
  },
  Active: {
    Bootstrap: bootstrap,
    Create: (state, { caller, name, requestId }, { nowMs }) => {
      const reason = notAdmin(caller)
      if (reason !== undefined) return deny(reason)
      return requestId === state.requestId && !state.founder
        ? stay().reply<AccountReply>({ _tag: "Created", view: view(state, nowMs), repeated: true })
        : deny("Taken", `account ${name} already exists: create a token of it instead`)
    },
    Describe: (state, { caller }, { nowMs }) => {
      const reason = notOwner(state.name, caller, true)
      return reason === undefined
        ? stay().reply<AccountReply>({ _tag: "Described", view: view(state, nowMs) })
        : deny(reason)
    },
    Authenticate: authenticate,
    RecordUse: recordUse,
    CountChange: countChange,
    ChooseReportsMailbox: chooseReportsMailbox,
    AdmitFailureReport: admitReport,
    // The issuer's admin must not become the operator of this service.
    Admit: ({ founder }) =>
      founder
        ? deny("Unauthenticated", "the operator's account accepts tokens of this service only")
        : stay().reply<AccountReply>({ _tag: "Admitted" }),
    AddToken: addToken,
    RemoveToken: (state, message, { nowMs }) => {
      const { caller, tokenId } = message
      const reason = notOwner(state.name, caller, true)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      return state.tokens.some((token) => token.id === tokenId && isValid(token, nowMs))
        ? changed(state, { tokens: revoke(state.tokens, [tokenId]) })
        : deny("NotFound")
    },
    RemoveTokens: (state, message, { nowMs }) => {
      const reason = notOwner(state.name, message.caller, true)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      const tokenIds = state.tokens.map(({ id }) => id)
      const revoked: AccountReply = { _tag: "Revoked", tokenIds }
      return state.tokens.some((token) => isValid(token, nowMs))
        ? changed(state, { tokens: revoke(state.tokens, tokenIds) }).reply(revoked)
        : stay().reply(revoked)
    },
    AddBrowserSession: addBrowserSession,
    AuthenticateBrowser: authenticateBrowser,
    TouchBrowserSession: touchBrowserSession,
    RemoveBrowserSession: (state, { caller, sessionId }, { nowMs }) =>
      endSessions(state, caller, nowMs, sessionId),
    RemoveBrowserSessions: (state, { caller }, { nowMs }) => endSessions(state, caller, nowMs),
    TokenRecordsRemoved: tokenRecordsRemoved,
    Remove: (state, message, { nowMs }) => {
      const reason = notAdmin(message.caller)
      if (reason !== undefined) return deny(reason)
      if (isOutdated(state, message)) return deny("PreconditionFailed")
      if (state.founder) {
        return deny("LastAdmin", "the first account of the service cannot be removed")
      }
      const removed = { _tag: "Removed" } as const
      // The caller saw that it owns nothing, but a request under way may have created something.
      return message.name === undefined
        ? become<AccountState>(removed).setTimer(null).reply(done)
        : startOwnedRemoval(removed, state.name, nowMs).reply(done)
    },
    OwnedRemoved: () => stay(),
    TimerFired: timerFired
  },
  Removed: {
    ...withoutAccount("Gone"),
    ...ownedCells,
    Describe: ({ owned }, { caller }) =>
      caller.admin && owned !== undefined ? deny("Gone", ownedText(owned)) : deny("Gone"),
    Remove: (state, { caller, name }, { nowMs }) => {
      const reason = notAdmin(caller)
      if (reason !== undefined) return deny(reason)
      if (state.owned !== undefined) return deny("Gone", ownedText(state.owned))
      return name === undefined ? deny("Gone") : startOwnedRemoval(state, name, nowMs).reply(done)
    },
    Bootstrap: () => deny("Gone"),
    Create: (_, { name }) =>
      deny("Taken", `account ${name} was removed; names are not reused: choose another name`),
    Admit: () => deny("Unauthenticated", "the account was removed")
  }
}
