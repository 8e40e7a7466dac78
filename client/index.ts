/**
 * The client library of restante: mailboxes, sending, pushes, sessions and queries over HTTP. It
 * runs on Node, Deno and Bun and in browsers, without dependencies.
 */
export type { AccountRemoval, AccountRole, Accounts, ClusterReport, KindStatus, ListedAccount,
  ListedToken, NewAccount, NewAccountOptions, NodeStatus, TokenOptions } from "./administration.ts"
export type { RecordedAttempt, RecordedHeader } from "./attempts/index.ts"
export type { AuditCheck, AuditFilter, AuditLog, AuditPoint, RecordedOperation } from "./audit.ts"
export type { Cabinet, CabinetContents, CabinetMailboxState, CabinetPage,
  Filed } from "./cabinets.ts"
export { type Client, connect, type ConnectOptions, type Content, type Published, type Publishing,
  type ReadContentOptions, type Receipt } from "./client.ts"
export type { ListedMailbox, Mailbox, MailboxPage, MailboxSecrets, MailboxSettings, OpenedMailbox,
  ReadOptions } from "./mailbox.ts"
export type { CachedCopy, Connection, InlineContent, Notification, NotificationInput,
  ReceivedNotification, Watch, Watching } from "./notifications.ts"
export type { NotificationProgress, Outgoing, OutgoingPauses, ProgressSummary, Recipient,
  RecipientAttempt, RecipientAttempts, RecipientStatus, Replacement, Retrying, Sending, SendOptions,
  Sent, SentNotification, SentStatus, Waiting } from "./outgoing.ts"
export type { Customer, CustomerField, CustomerFile, CustomerQuery, LoadProgress, Queries, Query,
  QueryCondition, Quote, TableQuery } from "./queries.ts"
export type { CallbackAttempt, NewRegistration, Registration, RegistrationEntry, RegistrationInfo,
  RegistrationTest } from "./registration.ts"
export type { ListedSession, Session, SessionAnswer, SessionProgress } from "./session.ts"
export { Conflict, ConnectionError, type CursorListingOptions, type Fetch, Forbidden, Gone,
  InvalidSignature, type Json, type JsonObject, type ListingOptions, NotFound, pathOf,
  type PostOptions, PreconditionFailed, type Problem, ProblemError, type RequestContentBody,
  RestanteError, type ServiceRequest, type ServiceResponse, type SignatureFault, TooLarge,
  TooManyRequests, Unauthenticated, Unavailable, UnexpectedAnswer, UnknownCursor, Unprocessable,
  type WriteCondition } from "./transport/index.ts"
export { diagnoseSignature, type Incoming, type IncomingHeaders, type Push, type PushReceiver,
  pushReceiver, readHeaderText, readPush, readRequestText, type RequestText, type SignatureCheck,
  type SignatureDiagnosis, type Verification, verifyHubPush, verifyHubSignature, verifyPush,
  verifySignature } from "./webhooks/index.ts"
