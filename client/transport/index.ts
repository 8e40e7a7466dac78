/** Requests to a service: attempts, credentials, problems, documents. */
export { Conflict, ConnectionError, Forbidden, Gone, InvalidSignature, NotFound, PreconditionFailed,
  type Problem, ProblemError, RestanteError, type SignatureFault, TooLarge, TooManyRequests,
  Unauthenticated, Unavailable, UnexpectedAnswer, Unprocessable } from "./errors.ts"
export { defined, type Json, type JsonObject, listOf, numberOf, objectOf, optionalNumber,
  optionalObject, optionalText, parseObject, textOf, unexpected, wordOf } from "./json.ts"
export { linkOf, type ListingOptions, pagesOf, withQuery } from "./pages.ts"
export { backoffMs, basic, defaultAttempts, either, type Fetch, HttpTransport, newKey, pause,
  problemOf, readBytes, type RequestContentBody } from "./transport.ts"
export { xmlToJson } from "./xml.ts"
