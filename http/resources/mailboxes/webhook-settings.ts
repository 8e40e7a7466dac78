/**
 * The settings of webhooks: the secret by which they are signed, which no answer shows, and the
 * form of the mailbox's page, which also changes the templates.
 */
import { Effect } from "effect"
import type { MailboxMessage, MailboxReply } from "../../../actors/mailbox/index.ts"
import { signingSecretOf } from "../../../actors/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { webhookSecretCharsMax, webhookSecretCharsMin } from "../../limits.ts"
import { ask, type Call, conditionFailed, emptyAnswer, type HandlerFailure, type HttpError,
  preconditionsHold, readInput, unprocessable } from "../../pipeline/index.ts"
import { checkSecret, defineMailboxHandler, type MailboxCall } from "./mailbox-access.ts"
import { auditedOf, describeOwned } from "./mailbox-collection.ts"
import { type FieldReader, fieldsOf, readWebhookTemplates } from "./mailbox-settings.ts"
import { toMailbox } from "./read-marks.ts"
import { senderNames } from "./webhook-template.ts"

const checkUsable = (secret: string): Effect.Effect<string, HttpError> =>
  secret.length >= webhookSecretCharsMin && secret.length <= webhookSecretCharsMax &&
    /^[\x21-\x7e]+$/.test(secret)
    ? Effect.succeed(secret)
    : unprocessable(
      `secret must have ${webhookSecretCharsMin} to ${webhookSecretCharsMax} characters of ASCII, `
        + "and no space"
    )

/** Replaces the secret, or removes it; only the owner may. */
const storeSecret = (
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount,
  secret: string | null
): Effect.Effect<unknown, HandlerFailure> => {
  const { mailbox, service } = mailboxCall
  const message: MailboxMessage = {
    _tag: "SetWebhookSecret",
    caller: callerOf(account),
    secret: secret === null ? null : service.keyring.seal(signingSecretOf(mailbox.to), secret)
  }
  const change = ask<MailboxReply>(service, mailbox.to, message)
  const allowed = describeOwned(mailboxCall, account)
  return auditedOf(mailboxCall, account, "mailbox.secrets", allowed, () => change)
}

/** Sets the secret by which webhooks are signed, or removes it. It has no representation. */
const changeWebhookSecret = (read: (call: Call) => Effect.Effect<string | null, HandlerFailure>) =>
  defineMailboxHandler(function*(mailboxCall) {
    const { call, mailbox, service } = mailboxCall
    const account = yield* requireAccount(service, call)
    yield* checkSecret(service, mailbox)
    if (!preconditionsHold(call, undefined)) return yield* conditionFailed
    yield* storeSecret(mailboxCall, account, yield* read(call))
    return emptyAnswer(204, [mailbox.link])
  })

/** PUT to …/webhook-secret: webhooks need a signature by this secret. */
export const putWebhookSecret = changeWebhookSecret((call) =>
  Effect.flatMap(
    readInput(call, "webhook-secret"),
    (input) => checkUsable(fieldsOf(input)("secret") ?? "")
  )
)

/** DELETE of it: webhooks need no signature. */
export const deleteWebhookSecret = changeWebhookSecret(() => Effect.succeed(null))

/** The new secret of the form: null to remove it, undefined to keep it. */
const readNewSecret = Effect.fnUntraced(function*(
  field: FieldReader
): Effect.fn.Return<string | null | undefined, HttpError> {
  const secret = field("secret")
  const isRemoved = field("unsigned") === "true"
  if (secret === undefined) return isRemoved ? null : undefined
  return isRemoved
    ? yield* unprocessable("secret must be empty where unsigned webhooks are taken")
    : yield* checkUsable(secret)
})

/** The templates of the form, where the name of a sender stands for a description. */
const readTemplates = Effect.fnUntraced(function*(field: FieldReader) {
  const sender = field("sender")
  if (sender === undefined) return yield* readWebhookTemplates(field)
  if (!senderNames.includes(sender)) {
    return yield* unprocessable(`sender must be one of ${senderNames.join(", ")}, or empty`)
  }
  if (field("webhook") !== undefined) {
    return yield* unprocessable(`webhook must be empty: ${sender} has a template of its own`)
  }
  return yield* readWebhookTemplates((name) => name === "webhook" ? sender : field(name))
})

/**
 * POST of the form of the page: replaces the templates, and the secret where one is given. The
 * other settings stay as they are; 412 if somebody changes them meanwhile.
 */
export const postWebhookForm = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  // Before the form is read: a stranger's body is not waited for.
  yield* describeOwned(mailboxCall, account)
  const field = fieldsOf(yield* readInput(call, "webhooks", { form: true }))
  const templates = yield* readTemplates(field)
  const secret = yield* readNewSecret(field)
  // First, so that no unsigned webhook comes in where the templates are new, too.
  if (secret !== undefined) yield* storeSecret(mailboxCall, account, secret)
  const { settings: { webhook: _, ...others }, version } = yield* describeOwned(
    mailboxCall,
    account
  )
  const message: MailboxMessage = {
    _tag: "Configure",
    caller: callerOf(account),
    settings: { ...others, ...templates },
    ifVersion: version
  }
  yield* ask<MailboxReply>(service, mailbox.to, message)
  return toMailbox(mailbox)
})
