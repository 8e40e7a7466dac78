/**
 * Handlers for owners (protocol §1.2): creating a mailbox (A9), the list of the caller's
 * mailboxes, settings, secrets, and the end of a mailbox (A10).
 */
import { Effect, Option } from "effect"
import { firstStartRequestId, type MailboxMessage, mailboxOwnersTable, type MailboxReply,
  type MailboxView, openForOwner, ownersEntry,
  type OwnerSettings } from "../../../actors/mailbox/index.ts"
import type { AccountMessage, AccountReply, TokenScope } from "../../../actors/account/index.ts"
import { accountKind, failureReportsFormat } from "../../../actors/index.ts"
import { address, isRefusal } from "../../../runtime/index.ts"
import { type AuditedAction, auditedIfAllowed } from "../../audit/index.ts"
import { type IdSource, isSlug, randomIds, secretHash } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount,
  scopeFault } from "../../auth/index.ts"
import type { HtmlForm } from "../../formats/html/index.ts"
import { chooseFormat, formatsOf, standardTypes } from "../../formats/index.ts"
import { askedAtOnceMax, browserLookupMs, slugCharsMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, awaitFormat, type Call, checkShownVersion, defineHandler,
  emptyAnswer, entityTagsOfPages, expectedVersion, failRefused, type HandlerFailure, httpError,
  inPlace, isPageRequest, noStore, readerHeaders, readFormMethod, readInput, readPageRequest,
  redisplayOutdated, refusalError, type RequestInput, seeOther, type Service, shownVersion,
  unprocessable, viewAnswer } from "../../pipeline/index.ts"
import { changeOnce, removeOnce } from "../../request-record.ts"
import type { HttpRequest } from "../../wire/index.ts"
import { checkSecret, defineMailboxHandler, describeMailbox, listHrefOf, type MailboxCall,
  type MailboxRef, mailboxRefNamed, toMailbox, withMailboxLink } from "./mailbox-access.ts"
import { latestTypes, readLatest, readPage, wholeQuery } from "./listing/index.ts"
import { readPreviews } from "./mailbox-previews.ts"
import { type FieldReader, fieldsOf, readSettings } from "./mailbox-settings.ts"
import { settingsForm } from "./settings-views.ts"
import { listingView, mailboxesView, type OwnedMailbox, secretsView,
  settingsView } from "./mailbox-views.ts"

/** Removes a mailbox from an account's list. A failure leaves a hint that the list ignores. */
const removeFromOwner = (
  { records }: Service,
  owner: string,
  name: string
): Effect.Effect<void> =>
  Effect.ignore(
    records.write([{
      table: mailboxOwnersTable,
      key: `${owner}/${name}`,
      value: null,
      markerExpires: true
    }])
  )

/** New secrets, and their hashes for the mailbox's actor. */
const makeSecrets = ({ href }: MailboxRef, ids: IdSource) => {
  const password = ids.secret("password")
  const shared = ids.secret("shared")
  return {
    secrets: { password, sharedHref: `${href}~${shared}` },
    hashes: { passwordHash: secretHash(password), sharedHash: secretHash(shared) }
  }
}

/* The caller's mailboxes. */

/** The Slug field, which is percent-encoded (RFC 5023 §9.7). */
const slugOf = (call: Call): string | undefined => {
  const field = call.request.headers.get("slug")?.trim()
  if (field === undefined || field === "") return undefined
  try {
    return decodeURIComponent(field)
  } catch {
    return field
  }
}

/** The requested name, or a random one of 32 hexadecimal digits. */
const nameOf = (call: Call, field: FieldReader): Effect.Effect<string, HandlerFailure> => {
  const name = field("name") ?? slugOf(call) ??
    Buffer.from(call.ids.id("mailbox"), "base64url").toString("hex")
  return isSlug(name)
    ? Effect.succeed(name)
    : unprocessable(
      `name must be small letters, digits and hyphens, not a hyphen first, at most ${slugCharsMax}`
    )
}

/** Removes a name from an account's list once another account owns that mailbox. */
const removeTakenName = Effect.fnUntraced(function*(
  service: Service,
  owner: string,
  mailbox: MailboxRef
): Effect.fn.Return<void, HandlerFailure> {
  const view = yield* describeMailbox(service, mailbox, owner)
  const isOthers = isRefusal(view) ? view.reason === "Gone" : !view.isOwner
  if (isOthers) yield* removeFromOwner(service, owner, mailbox.name)
})

/** Runs a change of a mailbox between two entries of the audit log, if it is allowed. */
export const auditedOf = <Checked, A>(
  { call, mailbox, service }: MailboxCall,
  account: AuthenticatedAccount,
  action: AuditedAction,
  allowed: Effect.Effect<Checked, HandlerFailure>,
  change: (checked: Checked) => Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> => {
  const target = `/mailboxes/${mailbox.name}`
  const operation = { caller: callerOf(account), action, target }
  return auditedIfAllowed(service, call, operation, allowed, change)
}

/** The mailbox, for its owner or, if `orAdmin`, an admin; fails with 403, 404 and 410. */
export const describeOwned = Effect.fnUntraced(function*(
  { mailbox, service }: Pick<MailboxCall, "mailbox" | "service">,
  account: AuthenticatedAccount,
  orAdmin = false
): Effect.fn.Return<MailboxView, HandlerFailure> {
  const view = yield* failRefused(describeMailbox(service, mailbox, account.name))
  if (view.isOwner || (orAdmin && account.roles.includes("admin"))) return view
  return yield* refusalError({ _tag: "Refused", reason: "Forbidden", detail: undefined })
})

/** A9. The name enters the account's list first, so that the list never lacks a mailbox. */
export const postMailboxes = defineHandler(function*(service, call) {
  const account = yield* requireAccount(service, call)
  const field = fieldsOf(yield* readInput(call, "mailbox", { form: true, mayBeEmpty: true }))
  const mailbox = mailboxRefNamed(service, yield* nameOf(call, field))
  const settings = yield* readSettings(field, service.settings)
  const { hashes, secrets } = makeSecrets(mailbox, call.ids)
  const request = {
    requestId: call.ids.id("request"),
    owner: account.name,
    ...account.roles.includes("admin") ? { isAdmin: true } : {}
  }
  const asking = Effect.fnUntraced(function*(
    message: MailboxMessage
  ): Effect.fn.Return<void, HandlerFailure> {
    const reply = yield* askOrRefusal<MailboxReply>(service, mailbox.to, message)
    if (!isRefusal(reply)) return
    yield* Effect.ignore(removeTakenName(service, account.name, mailbox))
    return yield* reply.reason === "Taken"
      ? withMailboxLink(
        httpError("conflict", reply.detail ?? `the name ${mailbox.name} is taken`),
        mailbox
      )
      : refusalError(reply)
  })
  yield* auditedOf(
    { call, mailbox, service },
    account,
    "mailbox.create",
    asking({ _tag: "CheckCreate", ...request }),
    () =>
      Effect.andThen(
        service.records.write([ownersEntry(account.name, mailbox.name)]),
        asking({ _tag: "Create", ...request, settings, ...hashes })
      )
  )
  return viewAnswer(secretsView(mailbox, secrets, settings), {
    status: 201,
    headers: [["Location", mailbox.href], ...noStore]
  })
})

/** The mailbox that the first start of a service opens. */
export interface FirstMailbox {
  readonly href: string
  /** Reads it without other credentials. */
  readonly sharedHref: string
}

/** Lets a mailbox receive the failure reports of its owner; logs it if that is not certain. */
const chooseForReports = Effect.fnUntraced(function*(
  service: Service,
  owner: string,
  mailbox: string
): Effect.fn.Return<void> {
  const caller = { account: owner, admin: false }
  const message: AccountMessage = { _tag: "ChooseReportsMailbox", caller, mailbox }
  const isChosen = (yield* awaitFormat(service, failureReportsFormat)) &&
    (yield* Effect.map(
      Effect.option(askOrRefusal<AccountReply>(service, address(accountKind, owner), message)),
      (reply) => Option.isSome(reply) && !isRefusal(reply.value)
    ))
  if (isChosen) return
  yield* Effect.logWarning(
    `the mailbox ${mailbox} may not receive the failure reports of ${owner}: look at ` +
      `/accounts/${owner}, and choose it there`
  )
})

/**
 * Opens the mailbox `inbox` of an account, at the first start of a service. Until somebody has used
 * it, that account or an admin may create a mailbox in its place. Undefined if the name is taken.
 */
export const openFirstMailbox = Effect.fnUntraced(function*(
  service: Service,
  owner: string
): Effect.fn.Return<FirstMailbox | undefined, HandlerFailure> {
  const mailbox = mailboxRefNamed(service, "inbox")
  const { hashes, secrets: { sharedHref } } = makeSecrets(mailbox, randomIds)
  const settings = yield* readSettings(() => undefined, service.settings)
  const { name } = mailbox
  const opened = { name, owner, requestId: firstStartRequestId, settings, ...hashes }
  const reply = yield* openForOwner(service.records, service.system, opened)
  if (isRefusal(reply)) return undefined
  yield* chooseForReports(service, owner, name)
  return { href: mailbox.href, sharedHref }
})

/** Selects the names of existing mailboxes that the account owns. */
const listOwned = (service: Service, account: string, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => {
    const mailbox = mailboxRefNamed(service, name)
    return Effect.map(
      describeMailbox(service, mailbox, account),
      (view): ReadonlyArray<OwnedMailbox> => {
        if (isRefusal(view) || !view.isOwner) return []
        const { forReports, notifications, settings: { title = "" } } = view
        const isForReports = forReports !== undefined
        return [{ name, href: mailbox.href, title, notifications, isForReports }]
      }
    )
  }, { concurrency: askedAtOnceMax }).pipe(Effect.map((owned) => owned.flat()))

/** The first mailboxes of an account after a name: one more than `limit`, if there are as many. */
const readOwned = Effect.fnUntraced(function*(
  service: Service,
  account: string,
  after: string | undefined,
  limit: number
): Effect.fn.Return<ReadonlyArray<OwnedMailbox>, HandlerFailure> {
  const prefix = `${account}/`
  const owned: Array<OwnedMailbox> = []
  let key = after === undefined ? undefined : prefix + after
  let hasMore = true
  while (hasMore && owned.length <= limit) {
    const from = key === undefined ? {} : { after: key }
    const rows = yield* service.records.range(mailboxOwnersTable, {
      prefix,
      limit: limit + 1,
      ...from
    })
    hasMore = rows.length > limit
    key = rows.at(-1)?.key
    const names = rows.map((row) => row.key.slice(prefix.length))
    owned.push(...yield* listOwned(service, account, names))
  }
  return owned
})

/** The scopes of a token that may list mailboxes, if it is for all of them. */
export const listingScopes: ReadonlyArray<TokenScope> = ["read", "admin"]

/**
 * The names of the first mailboxes of a browser's account, for a page that offers them, but for the
 * one that the service has opened for its failure reports. There are none where `GET /mailboxes`
 * would refuse them, and where they cannot be read soon.
 */
export const offeredMailboxNames = (
  service: Service,
  call: Call,
  count: number
): Effect.Effect<ReadonlyArray<string>> => {
  const { identity, request } = call
  const account = identity._tag === "Browser" ? identity.known : undefined
  const listing = { ...call, access: { scopes: listingScopes, isOptional: false } }
  if (
    account === undefined || !isPageRequest(request) ||
    scopeFault(listing, account.rights) !== undefined
  ) return Effect.succeed([])
  const reading = readOwned(service, account.name, undefined, count)
  return inPlace(service.actorListings, request, reading).pipe(
    Effect.timeout(browserLookupMs),
    Effect.map((owned) => owned.filter(({ isForReports }) => !isForReports)),
    Effect.map((owned) => owned.slice(0, count).map(({ name }) => name)),
    Effect.catch(() => Effect.succeed([]))
  )
}

/** A page of the caller's mailboxes, by name. */
export const getMailboxes = defineHandler(function*(service, call) {
  const account = yield* requireAccount(service, call)
  const { after, limit } = yield* readPageRequest(call, isSlug)
  const reading = readOwned(service, account.name, after, limit)
  const owned = yield* inPlace(service.actorListings, call.request, reading)
  const listed = owned.slice(0, limit)
  const last = listed.at(-1)?.name
  const next = owned.length > limit && last !== undefined
    ? absoluteUri(service, `/mailboxes?after=${last}&limit=${limit}`)
    : undefined
  return viewAnswer(mailboxesView(service, listed, next), { headers: readerHeaders })
})

/* One mailbox. */

/** The request as one of the mailbox itself, whose entity tags the sender of a form knows. */
const requestOfMailbox = (call: Call, name: string, baseUrl: string): HttpRequest => {
  const { choice, headers, method, remoteAddress, viewer } = call.request
  if (choice !== undefined) return call.request
  const at = { path: `/mailboxes/${name}`, query: "" }
  const offer = { formats: formatsOf([...standardTypes, ...latestTypes]), parameters: [] }
  const asked = chooseFormat(at, offer, baseUrl)
  return { ...at, method, headers, remoteAddress, viewer, choice: asked }
}

/**
 * The settings' version for which the conditions hold: they may name the entity tag of any
 * representation that the owner gets without a query.
 */
const expectedSettings = Effect.fnUntraced(function*(
  { call, mailbox: { name }, service }: MailboxCall,
  account: AuthenticatedAccount
): Effect.fn.Return<{ readonly ifVersion?: number }, HandlerFailure> {
  const mailbox = mailboxRefNamed(service, name)
  const list = listHrefOf({ call, mailbox })
  return yield* expectedVersion(
    call,
    Effect.gen(function*() {
      // Who may not change the mailbox learns nothing of its state.
      const view = yield* describeOwned({ mailbox, service }, account, true)
      const pages = Effect.gen(function*() {
        const page = yield* readPage(service, mailbox, view, wholeQuery)
        const latest = yield* readLatest(service, mailbox, view, wholeQuery)
        const previews = yield* readPreviews(service, call.request, mailbox, latest)
        return [
          { view: listingView(mailbox, page, wholeQuery), offered: standardTypes },
          {
            view: listingView(mailbox, latest, wholeQuery, { previews, list }),
            offered: latestTypes
          }
        ]
      })
      const request = requestOfMailbox(call, name, service.settings.baseUrl)
      return { version: view.version, tags: yield* entityTagsOfPages({ request }, pages) }
    })
  )
})

/** PUT: replaces the settings; a setting that the document omits gets its default. */
export const putMailbox = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  const field = fieldsOf(yield* readInput(call, "mailbox"))
  const settings = yield* readSettings(field, service.settings)
  const message: MailboxMessage = {
    _tag: "Configure",
    caller: callerOf(account),
    settings,
    ...yield* expectedSettings(mailboxCall, account)
  }
  yield* ask<MailboxReply>(service, mailbox.to, message)
  return viewAnswer(settingsView(mailbox, settings))
})

/** Removes the mailbox with its notifications, for its owner or an admin. */
const destroy = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount
): Effect.fn.Return<void, HandlerFailure> {
  const { mailbox, service } = mailboxCall
  const allowed = Effect.gen(function*() {
    const { owner } = yield* describeOwned(mailboxCall, account, true)
    return { owner, ...yield* expectedSettings(mailboxCall, account) }
  })
  const owner = yield* auditedOf(
    mailboxCall,
    account,
    "mailbox.remove",
    allowed,
    ({ owner, ...expected }) => {
      const message: MailboxMessage = { _tag: "Destroy", caller: callerOf(account), ...expected }
      return Effect.as(ask<MailboxReply>(service, mailbox.to, message), owner)
    }
  )
  yield* removeFromOwner(service, owner, mailbox.name)
})

/** A10. */
export const deleteMailbox = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  yield* destroy(mailboxCall, account)
  return emptyAnswer(204)
})

/** The settings that a form changes, and those that stay. */
interface FormChange {
  readonly settings: OwnerSettings
  readonly webhookSecret?: string | null
}

/**
 * Changes by a form of the page those settings that it has: of the version that the page has shown,
 * or else of the current one. Fails with 412 if somebody has changed the settings meanwhile; the
 * page then has the form again, as `formOf` makes it.
 */
export const configureByForm = (
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount,
  input: RequestInput,
  formOf: (view: MailboxView) => HtmlForm,
  changeOf: (view: MailboxView) => FormChange
): Effect.Effect<void, HandlerFailure> => {
  const { call, mailbox, service } = mailboxCall
  const described = describeOwned(mailboxCall, account)
  const version = Effect.gen(function*() {
    const expected = yield* expectedSettings(mailboxCall, account)
    const current = expected.ifVersion ?? (yield* described).version
    yield* checkShownVersion(input, current)
    return current
  })
  const change = changeOnce(
    service,
    call,
    version,
    (expected) =>
      Effect.flatMap(described, (view) => {
        const message: MailboxMessage = {
          _tag: "Configure",
          caller: callerOf(account),
          ...changeOf(view),
          ifVersion: view.version,
          ...shownVersion(input),
          ...expected
        }
        return askOrRefusal<MailboxReply>(service, mailbox.to, message)
      })
  )
  const now = Effect.map(described, formOf)
  return Effect.asVoid(redisplayOutdated(call, input, now, failRefused(change)))
}

/**
 * Removes a mailbox by a form. A repetition whose first attempt has removed it takes its name off
 * the list of the caller, which that attempt may not have reached.
 */
const destroyOnce = Effect.fnUntraced(function*(
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount
): Effect.fn.Return<void, HandlerFailure> {
  const { call, mailbox, service } = mailboxCall
  const removal = destroy(mailboxCall, account)
  if (call.key?.earlier === undefined) return yield* removal
  // The audit log has no refusal of what the first attempt has done.
  yield* removeOnce(call, Effect.andThen(describeOwned(mailboxCall, account, true), removal))
  yield* removeFromOwner(service, account.name, mailbox.name)
})

const readSettingsForm = (call: Call) => readFormMethod(call, "settings", ["put", "delete"])

/**
 * The mailbox for its owner or an admin, before the form is read: a stranger's body is not waited
 * for. What the form was for is known when it has arrived: the audit log then has the refusal.
 */
const allowForm = (
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount
): Effect.Effect<unknown, HandlerFailure> =>
  Effect.tapError(describeOwned(mailboxCall, account, true), (failure) => {
    const refused = Effect.fail(failure)
    const recorded = Effect.flatMap(
      readSettingsForm(mailboxCall.call),
      ({ method }) =>
        method === "delete"
          ? auditedOf(mailboxCall, account, "mailbox.remove", refused, () => Effect.void)
          : Effect.void
    )
    return Effect.forkDetach(Effect.ignore(recorded))
  })

/**
 * PUT or DELETE from the forms of the page. The settings of webhooks stay as they are: they have a
 * form of their own. Only a form with the name of the mailbox removes it.
 */
export const postSettingsForm = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  // The body of a keyed request has been read, and a repetition may find the mailbox removed.
  if (call.key === undefined) yield* allowForm(mailboxCall, account)
  const { input, method } = yield* readSettingsForm(call)
  const field = fieldsOf(input)
  if (method === "delete") {
    if (field("name") !== mailbox.name) {
      return yield* unprocessable(`name must be ${mailbox.name}, to remove this mailbox`)
    }
    yield* destroyOnce(mailboxCall, account)
    return seeOther(service, "/mailboxes")
  }
  yield* describeOwned(mailboxCall, account)
  const { webhook: _, ...settings } = yield* readSettings(field, service.settings)
  yield* configureByForm(
    mailboxCall,
    account,
    input,
    ({ settings: saved, version }) => settingsForm(mailbox.name, saved, version),
    ({ settings: { webhook } }) => ({
      settings: { ...settings, ...webhook === undefined ? {} : { webhook } }
    })
  )
  return toMailbox(mailboxCall)
})

/**
 * POST to …/password: replaces both secrets, and shows the new ones once. A repetition replaces
 * only those that the first attempt has found.
 */
export const postPassword = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  const { hashes, secrets } = makeSecrets(mailbox, call.ids)
  const caller = callerOf(account)
  const described = describeOwned(mailboxCall, account)
  const checked = Effect.andThen(checkSecret(service, mailbox), described)
  // The path of a repetition may have the secret that the first attempt has replaced.
  const allowed = call.key?.earlier === undefined ? checked : described
  const version = Effect.map(checked, (view) => view.version)
  const change = failRefused(changeOnce(service, call, version, (expected) => {
    const message: MailboxMessage = { _tag: "ChangeSecrets", caller, ...hashes, ...expected }
    return askOrRefusal<MailboxReply>(service, mailbox.to, message)
  }))
  yield* auditedOf(mailboxCall, account, "mailbox.secrets", allowed, () => change)
  return viewAnswer(secretsView(mailbox, secrets), { headers: noStore })
})
