/**
 * The settings of webhooks: the secret by which they are signed, which no answer shows, and the
 * form of the mailbox's page, which also changes the templates.
 */
import { Effect } from "effect"
import { configuredSecretFormat, type MailboxMessage, type MailboxReply,
  type WebhookTemplates } from "../../../actors/mailbox/index.ts"
import { signingSecretOf } from "../../../actors/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { webhookSecretCharsMax, webhookSecretCharsMin } from "../../limits.ts"
import { ask, type Call, conditionFailed, emptyAnswer, type HandlerFailure, type HttpError,
  preconditionsHold, readInput, requireFormat, unprocessable } from "../../pipeline/index.ts"
import { checkSecret, defineMailboxHandler, type MailboxCall, toMailbox } from "./mailbox-access.ts"
import { auditedOf, describeOwned } from "./mailbox-collection.ts"
import { type FieldReader, fieldsOf, readWebhookTemplates } from "./mailbox-settings.ts"
import { senderNames } from "./webhook-template.ts"

const checkUsable = (secret: string): Effect.Effect<string, HttpError> =>
  secret.length >= webhookSecretCharsMin && secret.length <= webhookSecretCharsMax &&
    /^[\x21-\x7e]+$/.test(secret)
    ? Effect.succeed(secret)
    : unprocessable(
      `secret must have ${webhookSecretCharsMin} to ${webhookSecretCharsMax} characters of ASCII, `
        + "and no space"
    )

/** A secret as it is stored; null removes it. */
const sealed = ({ mailbox, service }: MailboxCall, secret: string | null): string | null =>
  secret === null ? null : service.keyring.seal(signingSecretOf(mailbox.to), secret)

/** Sends a message that changes the secret, which only the owner may. */
const changeSecret = (
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount,
  message: MailboxMessage
): Effect.Effect<unknown, HandlerFailure> =>
  auditedOf(
    mailboxCall,
    account,
    "mailbox.secrets",
    describeOwned(mailboxCall, account),
    () => ask<MailboxReply>(mailboxCall.service, mailboxCall.mailbox.to, message)
  )

/** Sets the secret by which webhooks are signed, or removes it. It has no representation. */
const changeWebhookSecret = (read: (call: Call) => Effect.Effect<string | null, HandlerFailure>) =>
  defineMailboxHandler(function*(mailboxCall) {
    const { call, mailbox, service } = mailboxCall
    const account = yield* requireAccount(service, call)
    yield* checkSecret(service, mailbox)
    if (!preconditionsHold(call, undefined)) return yield* conditionFailed
    const secret = sealed(mailboxCall, yield* read(call))
    const message = { _tag: "SetWebhookSecret", caller: callerOf(account), secret } as const
    yield* changeSecret(mailboxCall, account, message)
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

/**
 * The templates of the form, where the name of a sender stands for a description: for that of
 * before, too, which the form has shown.
 */
const readTemplates = Effect.fnUntraced(function*(
  field: FieldReader,
  before: WebhookTemplates | undefined
) {
  const sender = field("sender")
  if (sender === undefined) return yield* readWebhookTemplates(field)
  if (!senderNames.includes(sender)) {
    return yield* unprocessable(`sender must be one of ${senderNames.join(", ")}, or empty`)
  }
  if (![undefined, before?.description].includes(field("webhook"))) {
    return yield* unprocessable(`webhook must be empty: ${sender} has a template of its own`)
  }
  return yield* readWebhookTemplates((name) => name === "webhook" ? sender : field(name))
})

/**
 * POST of the form of the page: replaces the templates and, in the same commit, the secret where
 * one is given. The other settings stay as they are; 412 if somebody changes them meanwhile.
 */
export const postWebhookForm = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  // Before the form is read: a stranger's body is not waited for.
  yield* describeOwned(mailboxCall, account)
  const field = fieldsOf(yield* readInput(call, "webhooks", { form: true }))
  const { settings: { webhook, ...others }, version } = yield* describeOwned(mailboxCall, account)
  const templates = yield* readTemplates(field, webhook)
  const secret = yield* readNewSecret(field)
  const message: MailboxMessage = {
    _tag: "Configure",
    caller: callerOf(account),
    settings: { ...others, ...templates },
    ifVersion: version
  }
  if (secret === undefined) {
    yield* ask<MailboxReply>(service, mailbox.to, message)
  } else {
    // An older node would store the templates without the secret, and take unsigned webhooks.
    yield* requireFormat(service, configuredSecretFormat)
    const webhookSecret = sealed(mailboxCall, secret)
    yield* changeSecret(mailboxCall, account, { ...message, webhookSecret })
  }
  return toMailbox(mailboxCall)
})
