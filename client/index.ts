/**
 * The client library of restante: mailboxes, sending, pushes, sessions and queries over HTTP, on
 * what Node, browsers and Deno have in common. No package is needed.
 */
export type { Cabinet, CabinetContents, CabinetPage, Filed } from "./cabinets.ts"
export { type Client, connect, type ConnectOptions } from "./client.ts"
export type { Content, Published, Publishing, ReadContentOptions, Receipt,
  WriteCondition } from "./content.ts"
export type { ListedMailbox, Mailbox, MailboxPage, MailboxSecrets, MailboxSettings, OpenedMailbox,
  ReadOptions } from "./mailbox.ts"
export type { CachedCopy, Connection, InlineContent, Notification, NotificationInput,
  ReceivedNotification, Watch, Watching } from "./notifications.ts"
export type { NotificationProgress, Outgoing, Recipient, RecipientStatus, Sending, SendOptions,
  Sent, SentNotification, SentStatus, Waiting } from "./outgoing.ts"
export type { Customer, CustomerField, CustomerQuery, Queries, Query, QueryCondition,
  Quote } from "./queries.ts"
export type { NewRegistration, Registration, RegistrationInfo } from "./registration.ts"
export type { ListedSession, Session, SessionAnswer, SessionProgress } from "./session.ts"
export { Conflict, ConnectionError, type Fetch, Forbidden, Gone, InvalidSignature, type Json,
  type JsonObject, type ListingOptions, NotFound, PreconditionFailed, type Problem, ProblemError,
  type RequestContentBody, RestanteError, type SignatureFault, TooLarge, TooManyRequests,
  Unauthenticated, Unavailable, UnexpectedAnswer, Unprocessable } from "./transport/index.ts"
export { type Incoming, type IncomingHeaders, type Push, type PushReceiver, pushReceiver, readPush,
  type Verification, verifyHubPush, verifyPush, verifySignature } from "./webhooks.ts"
