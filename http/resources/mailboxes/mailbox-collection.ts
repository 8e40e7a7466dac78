/** `/mailboxes`: opening one (A9), and the list of one's own (protocol §1.2). */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply, MailboxView } from "../../../actors/mailbox/index.ts"
import { isRefusal } from "../../../runtime/index.ts"
import { type IdSource, secretHash } from "../../auth/credentials/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { renderForm } from "../../formats/html/index.ts"
import { standardTypes } from "../../formats/index.ts"
import { element } from "../../formats/xml/index.ts"
import { askedAtOnceMax, pageEntriesDefault, pageEntriesMax, slugCharsMax } from "../../limits.ts"
import { absoluteUri, ask, askOrRefusal, type Call, emptyAnswer, entityTags, type HandlerAnswer,
  type HandlerFailure, httpError, isConditional, preconditionsHold, readDocument, readInput,
  readQuery, refusalError, type Service, viewAnswer } from "../../pipeline/index.ts"
import { isSlug } from "../../slug.ts"
import { checkSecret, linked, type MailboxRef, mailboxRefNamed } from "./mailbox-access.ts"
import { latestTypes, readLatest, readPage, wholeQuery } from "./mailbox-listing.ts"
import { defaultRetention, type FieldReader, fieldsOf, mailboxDocument, type MailboxSecretUris,
  parseSettings } from "./mailbox-settings.ts"
import { listingView, openForm, ownPage, secretsPage } from "./mailbox-views.ts"

type Described = Extract<MailboxReply, { readonly _tag: "Described" }>

/** Table of the names of the mailboxes of each account: a hint, for the mailbox itself decides. */
export const ownersTable = "mailboxes-by-owner"

/** The mailbox's new secrets, and their hashes for its actor. */
export const newSecrets = (place: MailboxRef, ids: IdSource) => {
  const password = ids.secret("password")
  const shared = ids.secret("shared")
  const secrets: MailboxSecretUris = { password, sharedHref: `${place.href}~${shared}` }
  return {
    secrets,
    hashes: { passwordHash: secretHash(password), sharedHash: secretHash(shared) }
  }
}

/**
 * The version that a conditional request is about: 412 unless it names the entity tag of one of
 * the mailbox's representations as its owner gets them without a query.
 */
const expectedVersion = Effect.fnUntraced(function*(
  service: Service,
  call: Call,
  place: MailboxRef,
  account: AuthenticatedAccount
): Effect.fn.Return<{ readonly ifVersion?: number }, HandlerFailure> {
  if (!isConditional(call)) return {}
  const message: MailboxMessage = { _tag: "Describe", reader: { account: account.name } }
  const { view } = yield* ask<Described>(service, place.to, message)
  // Who may not change it at all is told so, whatever the condition.
  if (!view.isOwner && !account.roles.includes("admin")) return {}
  const page = yield* readPage(service, place, view, wholeQuery)
  const latest = yield* readLatest(service, place, view, wholeQuery)
  const tags = [
    ...entityTags(call, listingView(place, page, wholeQuery), standardTypes),
    ...entityTags(call, listingView(place, latest, wholeQuery), latestTypes)
  ]
  if (!preconditionsHold(call, tags)) {
    return yield* httpError("precondition-failed", "the mailbox is not as the condition says")
  }
  return { ifVersion: view.version }
})

/** PUT: other settings; what the document leaves out has its default again. */
export const putMailbox = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const account = yield* requireAccount(service, call)
      yield* checkSecret(service, place)
      const root = yield* readDocument(call, "mailbox")
      const field = fieldsOf({ _tag: "Document", root, bytes: new Uint8Array() })
      const settings = parseSettings(field, service.settings)
      if (!settings.ok) return yield* httpError("unprocessable", settings.fault)
      const message: MailboxMessage = {
        _tag: "Configure",
        caller: callerOf(account),
        settings: settings.value,
        ...yield* expectedVersion(service, call, mailboxRefNamed(service, place.name), account)
      }
      yield* ask<MailboxReply>(service, place.to, message)
      return viewAnswer({
        title: settings.value.title ?? place.name,
        tree: mailboxDocument(place.href, settings.value),
        links: [{ rel: "mailbox", href: place.href }]
      })
    }
  )

/** A10: the mailbox with all that is in it. */
export const deleteMailbox = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const account = yield* requireAccount(service, call)
      yield* checkSecret(service, place)
      const reader = { account: account.name }
      const asked: MailboxMessage = { _tag: "Describe", reader }
      const { view } = yield* ask<Described>(service, place.to, asked)
      const message: MailboxMessage = {
        _tag: "Destroy",
        caller: callerOf(account),
        ...yield* expectedVersion(service, call, mailboxRefNamed(service, place.name), account)
      }
      yield* ask<MailboxReply>(service, place.to, message)
      yield* forget(service, view.owner, place)
      return emptyAnswer(204)
    }
  )

/** Takes a mailbox off its former owner's list; should that fail, the list passes over it. */
const forget = (service: Service, owner: string, place: MailboxRef): Effect.Effect<void> =>
  Effect.ignore(
    service.records.write([{
      table: ownersTable,
      key: `${owner}/${place.name}`,
      value: null,
      fades: true
    }])
  )

/** Takes a name off an account's list when it belongs to another mailbox for good. */
export const forgetTaken = Effect.fnUntraced(function*(
  service: Service,
  owner: string,
  place: MailboxRef
): Effect.fn.Return<void, HandlerFailure> {
  const message: MailboxMessage = { _tag: "Describe", reader: { account: owner } }
  const reply = yield* askOrRefusal<Described>(service, place.to, message)
  const isOthers = isRefusal(reply) ? reply.reason === "Gone" : !reply.view.isOwner
  if (isOthers) yield* forget(service, owner, place)
})

/** POST to …/password: both secrets anew, shown once. */
export const postPassword = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const account = yield* requireAccount(service, call)
      yield* checkSecret(service, place)
      const { hashes, secrets } = newSecrets(place, call.ids)
      const message: MailboxMessage = {
        _tag: "ChangeSecrets",
        caller: callerOf(account),
        ...hashes
      }
      yield* ask<MailboxReply>(service, place.to, message)
      return viewAnswer({
        title: "The mailbox's new secrets",
        tree: mailboxDocument(place.href, undefined, secrets),
        body: () => secretsPage(place.name, place.href, secrets),
        links: [{ rel: "mailbox", href: place.href }]
      }, { headers: [["Cache-Control", "no-store"]] })
    }
  )

/* What a mailbox's owner may do: settings, secrets, its end (A10), its list (protocol §1.2). */

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

/** The wished-for name, or one that the service picks: 32 hexadecimal digits, at random. */
const nameOf = (call: Call, field: FieldReader): Effect.Effect<string, HandlerFailure> => {
  const name = field("name") ?? slugOf(call) ??
    Buffer.from(call.ids.id("mailbox"), "base64url").toString("hex")
  return isSlug(name)
    ? Effect.succeed(name)
    : Effect.fail(httpError(
      "unprocessable",
      `name must be small letters, digits and hyphens, not a hyphen first, at most ${slugCharsMax}`
    ))
}

/** A9: the name goes onto the account's list first, so that no mailbox is ever missing there. */
export const postMailboxes = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const field = fieldsOf(yield* readInput(call, "mailbox", { form: true, mayBeEmpty: true }))
    const place = mailboxRefNamed(service, yield* nameOf(call, field))
    const settings = parseSettings(field, service.settings)
    if (!settings.ok) return yield* httpError("unprocessable", settings.fault)
    const { hashes, secrets } = newSecrets(place, call.ids)
    const key = `${account.name}/${place.name}`
    yield* service.records.write([{ table: ownersTable, key, value: "" }])
    const message: MailboxMessage = {
      _tag: "Create",
      requestId: call.ids.id("request"),
      owner: account.name,
      settings: settings.value,
      ...hashes
    }
    const reply = yield* askOrRefusal<MailboxReply>(service, place.to, message)
    if (isRefusal(reply)) {
      yield* Effect.ignore(forgetTaken(service, account.name, place))
      return yield* reply.reason === "Taken"
        ? linked(httpError("conflict", reply.detail ?? `the name ${place.name} is taken`), place)
        : refusalError(reply)
    }
    return viewAnswer({
      title: settings.value.title ?? place.name,
      tree: mailboxDocument(place.href, settings.value, secrets),
      body: () => secretsPage(place.name, place.href, secrets),
      links: [{ rel: "mailbox", href: place.href }]
    }, { status: 201, headers: [["Location", place.href], ["Cache-Control", "no-store"]] })
  })

interface Paging {
  readonly limit: number
  readonly after: string | undefined
}

const pagingOf = Effect.fnUntraced(function*(
  call: Call
): Effect.fn.Return<Paging, HandlerFailure> {
  const fields = yield* readQuery(call)
  const text = fields.get("limit") ?? String(pageEntriesDefault)
  const limit = Number(text)
  if (!/^\d{1,4}$/.test(text) || limit < 1 || limit > pageEntriesMax) {
    return yield* httpError("malformed", `limit must be a whole number from 1 to ${pageEntriesMax}`)
  }
  const after = fields.get("after")
  if (after !== undefined && !isSlug(after)) {
    return yield* httpError("malformed", "after is no name")
  }
  return { limit, after }
})

interface Owned {
  readonly name: string
  readonly view: MailboxView
}

/** Of these names those that are open mailboxes of the account. */
const ownedOf = (service: Service, account: string, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => {
    const message: MailboxMessage = { _tag: "Describe", reader: { account } }
    const { to } = mailboxRefNamed(service, name)
    return Effect.map(
      askOrRefusal<Extract<MailboxReply, { readonly _tag: "Described" }>>(service, to, message),
      (reply): ReadonlyArray<Owned> =>
        isRefusal(reply) || !reply.view.isOwner ? [] : [{ name, view: reply.view }]
    )
  }, { concurrency: askedAtOnceMax }).pipe(Effect.map((found) => found.flat()))

/** The caller's own mailboxes, by name. */
export const getMailboxes = (service: Service) =>
  Effect.fnUntraced(function*(call: Call): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
    const account = yield* requireAccount(service, call)
    const { after, limit } = yield* pagingOf(call)
    const prefix = `${account.name}/`
    const owned: Array<Owned> = []
    let key = after === undefined ? undefined : prefix + after
    let more = true
    while (more && owned.length <= limit) {
      const from = key === undefined ? {} : { after: key }
      const rows = yield* service.records.range(ownersTable, { prefix, limit: limit + 1, ...from })
      more = rows.length > limit
      key = rows.at(-1)?.key
      const names = rows.map((row) => row.key.slice(prefix.length))
      owned.push(...yield* ownedOf(service, account.name, names))
    }
    const listed = owned.slice(0, limit)
    const last = listed.at(-1)?.name
    const next = owned.length > limit && last !== undefined
      ? [{
        rel: "next",
        href: absoluteUri(service, `/mailboxes?after=${last}&limit=${limit}`),
        title: "More mailboxes"
      }]
      : []
    return viewAnswer({
      title: "Your mailboxes",
      tree: element(
        "mailboxes",
        {},
        ...listed.map(({ name, view }) =>
          element("mailbox", {
            href: mailboxRefNamed(service, name).href,
            title: view.settings.title ?? "",
            notifications: view.notifications
          })
        )
      ),
      links: next,
      body: () =>
        ownPage(listed.map(({ name, view: { notifications, settings } }) => ({
          href: mailboxRefNamed(service, name).href,
          title: settings.title ?? "",
          notifications
        }))),
      forms: renderForm(openForm(defaultRetention(service.settings)))
    }, { headers: [["Vary", "Authorization"], ["Cache-Control", "private, no-cache"]] })
  })
