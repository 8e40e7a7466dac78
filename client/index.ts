/**
 * The client library of restante: mailboxes, sending, pushes, sessions and queries over HTTP, on
 * what Node, browsers and Deno have in common. No package is needed.
 */
export type { Cabinet, CabinetContents, CabinetPage, Filed } from "./cabinets.ts"
export { type Client, connect, type ConnectOptions } from "./client.ts"
export type {
  Content,
  Published,
  Publishing,
  ReadContentOptions,
  Receipt,
  WriteCondition
} from "./content.ts"
export {
  Conflict,
  ConnectionError,
  Forbidden,
  Gone,
  InvalidSignature,
  NotFound,
  PreconditionFailed,
  type Problem,
  ProblemError,
  RestanteError,
  type SignatureFault,
  TooLarge,
  TooManyRequests,
  Unauthenticated,
  Unavailable,
  UnexpectedAnswer,
  Unprocessable
} from "./errors.ts"
export type { Json, JsonObject } from "./json.ts"
export type { ListedMailbox, Mailbox, MailboxPage, MailboxSecrets } from "./mailbox.ts"
export type { MailboxSettings, OpenedMailbox, ReadOptions } from "./mailbox.ts"
export type { CachedCopy, InlineContent, Notification, NotificationInput } from "./notification.ts"
export type { Outgoing, Recipient, RecipientStatus, Sending, SendOptions } from "./outgoing.ts"
export type {
  NotificationProgress,
  Sent,
  SentNotification,
  SentStatus,
  Waiting
} from "./outgoing.ts"
export type { ListingOptions } from "./pages.ts"
export type { Customer, CustomerField, CustomerQuery, Queries } from "./queries.ts"
export type { Query, QueryCondition, Quote } from "./queries.ts"
export type { NewRegistration, Registration, RegistrationInfo } from "./registration.ts"
export type { ListedSession, Session, SessionAnswer, SessionProgress } from "./session.ts"
export type { Fetch, RequestContentBody } from "./transport.ts"
export type { Connection, ReceivedNotification, Watch, Watching } from "./watch.ts"
export {
  type Incoming,
  type IncomingHeaders,
  type Push,
  type PushReceiver,
  pushReceiver,
  readPush,
  type Verification,
  verifyHubPush,
  verifyPush,
  verifySignature
} from "./webhooks.ts"
