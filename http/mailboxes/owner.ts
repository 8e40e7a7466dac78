/** What a mailbox's owner may do: settings, secrets, its end (A10), its list (protocol §1.2). */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply } from "../../actors/mailbox/protocol.ts"
import { isRefusal } from "../../runtime/index.ts"
import { type Call, documentOf, empty, type HandlerAnswer, shown } from "../call.ts"
import { fail, type HandlerFailure } from "../failures.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../identity.ts"
import { conditionsHold, entityTags, isConditional } from "../respond.ts"
import { type IdSource, secretHash } from "../secrets.ts"
import { ask, askFor, type Service } from "../service.ts"
import { standardTypes } from "../representations.ts"
import { latestTypes, readLatest } from "./latest.ts"
import { listingView, readPage, wholeQuery } from "./listing.ts"
import { secretsPage } from "./pages.ts"
import { checkSecret, type MailboxRef, mailboxRefNamed } from "./reader.ts"
import { fieldsOf, mailboxDocument, type MailboxSecretUris, parseSettings } from "./settings.ts"

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
  if (!conditionsHold(call, tags)) {
    return yield* fail("precondition-failed", "the mailbox is not as the condition says")
  }
  return { ifVersion: view.version }
})

/** PUT: other settings; what the document leaves out has its default again. */
export const putMailbox = (service: Service) =>
  Effect.fnUntraced(
    function*(call: Call, place: MailboxRef): Effect.fn.Return<HandlerAnswer, HandlerFailure> {
      const account = yield* requireAccount(service, call)
      yield* checkSecret(service, place)
      const root = yield* documentOf(call, "mailbox")
      const field = fieldsOf({ _tag: "Document", root, bytes: new Uint8Array() })
      const settings = parseSettings(field, service.settings)
      if (!settings.ok) return yield* fail("unprocessable", settings.fault)
      const message: MailboxMessage = {
        _tag: "Configure",
        caller: callerOf(account),
        settings: settings.value,
        ...yield* expectedVersion(service, call, mailboxRefNamed(service, place.name), account)
      }
      yield* ask<MailboxReply>(service, place.to, message)
      return shown({
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
      return empty(204)
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
  const reply = yield* askFor<Described>(service, place.to, message)
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
      return shown({
        title: "The mailbox's new secrets",
        tree: mailboxDocument(place.href, undefined, secrets),
        body: () => secretsPage(place.name, place.href, secrets),
        links: [{ rel: "mailbox", href: place.href }]
      }, { headers: [["Cache-Control", "no-store"]] })
    }
  )
