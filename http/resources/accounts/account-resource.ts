/** The operations of accounts and their tokens (protocol §4). */
import { Role } from "../../../actors/account/index.ts"
import { attributes, dateTime, documentRequestBody, elementText, emptyResponse, formRequestBody,
  formSchema, ignored, list, object, oneOf, pageVersion, pagingParameters, ref, rootElement,
  seeOtherResponse, slug, text, uri, viewResponse,
  withoutHtml } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { deleteAccount, deleteToken, deleteTokens, getAccount, getAccounts, getToken, getTokens,
  postAccountForm, postAccounts, postToken, postTokenForm, putAccount } from "./account-handlers.ts"
import { expirySchema, formScopeSchema, scopeSchema, tokenNameSchema } from "./account-schemas.ts"
import { accountForm, accountRemovalForm, noReports, reportsForm,
  tokenForm } from "./account-views.ts"

const role = ref("Role")

const token = {
  ...attributes({
    href: uri,
    id: text,
    name: text,
    created: dateTime,
    expires: dateTime,
    scope: text,
    used: { ...dateTime, description: "When it was last used; up to an hour old" }
  }),
  ...elementText("The token itself, in the one answer to the request that made it.")
}

/** What only answers show of an account, beside its tokens. */
const shown = {
  ...attributes({ href: uri, created: dateTime }),
  name: text,
  role: list(role)
}

const failureReports = {
  ...slug,
  description: "The account's mailbox that receives its failure reports; left out for none."
}

const newReports = {
  ...oneOf("", noReports),
  description:
    `${noReports}: no mailbox is opened for failure reports, and they go nowhere until ` +
    "one is chosen. By default one is opened, which the account owns and the answer names."
}

export const accountResource: ResourceDefinition = {
  tag: "accounts",
  about: "Accounts, their roles and their tokens.",
  isGuarded: true,
  schemas: {
    Role: oneOf(...Role.literals),
    Account: rootElement("account", {
      ...shown,
      token: list(ref("Token")),
      "failure-reports": failureReports
    }, ["href", "created", "name"]),
    ChangedAccount: rootElement("account", {
      ...ignored({ ...shown, token: list(object(ignored(token))) }),
      "failure-reports": failureReports
    }),
    Accounts: rootElement("accounts", { account: list(ref("Account")) }, ["account"]),
    NewAccount: rootElement("account", {
      name: slug,
      role: { anyOf: [role, list(role)] },
      "failure-reports": newReports
    }, ["name"]),
    Token: rootElement("token", token, ["href", "id", "created"]),
    Tokens: rootElement("tokens", { ...attributes({ href: uri }), token: list(ref("Token")) }, [
      "href"
    ]),
    NewToken: rootElement(
      "token",
      attributes({
        name: tokenNameSchema,
        expires: expirySchema,
        scope: scopeSchema
      })
    )
  },
  operations: {
    "GET /accounts": {
      handle: getAccounts,
      id: "listAccounts",
      summary: "Lists all accounts by name, for the role admin",
      needs: "role",
      scopes: ["admin"],
      query: pagingParameters,
      responses: { 200: viewResponse("Accounts", "A page of the listing") }
    },
    "POST /accounts": {
      handle: postAccounts,
      form: () => accountForm,
      id: "createAccount",
      summary: "Creates an account and a mailbox for its failure reports, for the role admin",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("NewAccount", {
        form: formSchema({
          name: slug,
          role: oneOf("", ...Role.literals),
          "failure-reports": newReports
        }, ["name"])
      }),
      problems: ["gone"],
      responses: { 201: viewResponse("Account", "The account, with its first token") }
    },
    "GET /accounts/{account}": {
      handle: getAccount,
      id: "getAccount",
      summary: "Reads an account, for itself and the role admin",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Account", "The account") }
    },
    "PUT /accounts/{account}": {
      handle: putAccount,
      id: "changeAccount",
      summary: "Chooses the mailbox that receives failure reports, or none",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("ChangedAccount"),
      problems: ["conflict"],
      responses: { 200: viewResponse("Account", "The changed account") }
    },
    "POST /accounts/{account}": {
      handle: postAccountForm,
      form: ({ parameters }, fields) =>
        fields.get("method") === "delete"
          ? accountRemovalForm(parameters.get("account"))
          : reportsForm(parameters.get("account")),
      id: "changeAccountByForm",
      summary: "Changes the account, or with `method=delete` removes it, for a page's form",
      needs: "role",
      scopes: ["admin"],
      body: formRequestBody(
        formSchema({
          method: oneOf("put", "delete"),
          version: pageVersion,
          "failure-reports": { anyOf: [oneOf(""), slug] },
          owned: oneOf("delete")
        }, ["method"])
      ),
      problems: ["conflict", "precondition-failed"],
      responses: {
        200: withoutHtml(viewResponse("Account", "The changed account")),
        303: seeOtherResponse
      }
    },
    "DELETE /accounts/{account}": {
      handle: deleteAccount,
      id: "deleteAccount",
      summary: "Removes an account, for the role admin; with what it owns if the query says so",
      needs: "role",
      scopes: ["admin"],
      query: {
        owned: {
          description: "What becomes of what the account owns: without it, such an account is 409.",
          schema: oneOf("delete")
        }
      },
      problems: ["conflict"],
      responses: {
        202: emptyResponse("Removed; what it owned is being deleted"),
        204: emptyResponse("Removed; it owned nothing, and its tokens are invalid")
      }
    },
    "POST /accounts/{account}/token": {
      handle: postToken,
      form: ({ parameters }) => tokenForm(parameters.get("account")),
      id: "createToken",
      summary: "Creates another token, for the account itself and the role admin",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("NewToken", {
        form: formSchema({
          name: tokenNameSchema,
          expires: expirySchema,
          scope: formScopeSchema,
          mailbox: { anyOf: [oneOf(""), slug] }
        }),
        isOptional: true
      }),
      responses: { 201: viewResponse("Token", "The token, only in this answer") }
    },
    "GET /accounts/{account}/tokens": {
      handle: getTokens,
      id: "listTokens",
      summary: "Lists the tokens of an account, without their secrets",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Tokens", "All tokens") }
    },
    "DELETE /accounts/{account}/tokens": {
      handle: deleteTokens,
      id: "deleteTokens",
      summary: "Revokes all tokens of an account",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"],
      responses: { 204: emptyResponse("All tokens are invalid") }
    },
    "GET /accounts/{account}/tokens/{token}": {
      handle: getToken,
      id: "getToken",
      summary: "Reads a token, without its secret",
      needs: "role",
      scopes: ["admin"],
      responses: { 200: viewResponse("Token", "The name of the token and its times") }
    },
    "POST /accounts/{account}/tokens/{token}": {
      handle: postTokenForm,
      id: "deleteTokenByForm",
      summary: "Revokes the token, for a page's form with `method=delete`",
      needs: "role",
      scopes: ["admin"],
      body: formRequestBody(formSchema({ method: oneOf("delete") }, ["method"])),
      problems: ["conflict", "precondition-failed"],
      responses: { 303: seeOtherResponse }
    },
    "DELETE /accounts/{account}/tokens/{token}": {
      handle: deleteToken,
      id: "deleteToken",
      summary: "Revokes a token",
      needs: "role",
      scopes: ["admin"],
      problems: ["conflict"],
      responses: { 204: emptyResponse("The token is invalid") }
    }
  }
}
