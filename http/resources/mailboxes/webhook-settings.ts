/**
 * The settings of webhooks: the secret by which they are signed, which no answer shows, and the
 * form of the mailbox's page, which also changes the templates.
 */
import { Effect } from "effect"
import { configuredSecretFormat, type MailboxReply } from "../../../actors/mailbox/index.ts"
import { signingSecretOf } from "../../../actors/index.ts"
import { type AuthenticatedAccount, callerOf, requireAccount } from "../../auth/index.ts"
import { webhookSecretCharsMax, webhookSecretCharsMin } from "../../limits.ts"
import { ask, type Call, conditionFailed, emptyAnswer, type HandlerFailure, type HttpError,
  preconditionsHold, readInput, requireFormat, unprocessable } from "../../pipeline/index.ts"
import { checkSecret, defineMailboxHandler, type MailboxCall, toMailbox } from "./mailbox-access.ts"
import { auditedOf, configureByForm, describeOwned } from "./mailbox-collection.ts"
import { type FieldReader, fieldsOf, readWebhookTemplates } from "./mailbox-settings.ts"
import { webhookForm } from "./settings-views.ts"
import { senderNames } from "./webhook-template.ts"

const checkUsable = (secret: string): Effect.Effect<string, HttpError> =>
  secret.length >= webhookSecretCharsMin && secret.length <= webhookSecretCharsMax &&
    /^[\x21-\x7e]+$/.test(secret)
    ? Effect.succeed(secret)
    : unprocessable(
      `secret must have ${webhookSecretCharsMin} to ${webhookSecretCharsMax} characters of ASCII, `
        + "and no space"
    )

/** A secret as it is stored: as it is now, if `stored` is the same one; null removes it. */
const sealed = (
  { mailbox, service }: MailboxCall,
  secret: string | null,
  stored?: string
): string | null => {
  if (secret === null) return null
  const use = signingSecretOf(mailbox.to)
  const isSame = stored !== undefined && service.keyring.open(use, stored) === secret
  return isSame ? stored : service.keyring.seal(use, secret)
}

/** Changes the secret between two entries of the audit log, which only the owner may. */
const auditedSecret = <A>(
  mailboxCall: MailboxCall,
  account: AuthenticatedAccount,
  change: Effect.Effect<A, HandlerFailure>
): Effect.Effect<A, HandlerFailure> =>
  auditedOf(
    mailboxCall,
    account,
    "mailbox.secrets",
    describeOwned(mailboxCall, account),
    () => change
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
    yield* auditedSecret(mailboxCall, account, ask<MailboxReply>(service, mailbox.to, message))
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
 * The templates of the form, where the name of a sender stands for a description: for one of
 * `shown`, too, which the form has shown; undefined: for any.
 */
const readTemplates = Effect.fnUntraced(function*(
  field: FieldReader,
  shown: ReadonlyArray<string | undefined> | undefined
) {
  const sender = field("sender")
  if (sender === undefined) return yield* readWebhookTemplates(field)
  if (!senderNames.includes(sender)) {
    return yield* unprocessable(`sender must be one of ${senderNames.join(", ")}, or empty`)
  }
  if (shown?.includes(field("webhook")) === false) {
    return yield* unprocessable(`webhook must be empty: ${sender} has a template of its own`)
  }
  return yield* readWebhookTemplates((name) => name === "webhook" ? sender : field(name))
})

/**
 * POST of the form of the page: replaces the templates and, in the same commit, the secret where
 * one is given. The other settings stay as they are.
 */
export const postWebhookForm = defineMailboxHandler(function*(mailboxCall) {
  const { call, mailbox, service } = mailboxCall
  const account = yield* requireAccount(service, call)
  yield* checkSecret(service, mailbox)
  // Before the form is read: a stranger's body is not waited for.
  const before = yield* describeOwned(mailboxCall, account)
  const input = yield* readInput(call, "webhooks", { form: true })
  const field = fieldsOf(input)
  // A repetition may find in place of the description that which the first attempt has stored.
  const isRepeated = call.key?.earlier !== undefined
  const shown = isRepeated ? undefined : [undefined, before.settings.webhook?.description]
  const templates = yield* readTemplates(field, shown)
  const secret = yield* readNewSecret(field)
  const change = configureByForm(
    mailboxCall,
    account,
    input,
    (view) => webhookForm(mailbox.name, view),
    (view) => {
      const { webhook: _, ...others } = view.settings
      return {
        settings: { ...others, ...templates },
        ...secret === undefined
          ? {}
          : { webhookSecret: sealed(mailboxCall, secret, view.webhookSecret) }
      }
    }
  )
  if (secret === undefined) {
    yield* change
  } else {
    // An older node would store the templates without the secret, and take unsigned webhooks.
    yield* requireFormat(service, configuredSecretFormat)
    yield* auditedSecret(mailboxCall, account, change)
  }
  return toMailbox(mailboxCall)
})
