/** The operations of accounts and their tokens (protocol §4). */
import { Role } from "../../../actors/account/index.ts"
import { attributes, dateTime, documentRequestBody, elementText, emptyResponse, formSchema, list,
  oneOf, pagingParameters, ref, rootElement, slug, text, uri,
  viewResponse } from "../../formats/openapi/index.ts"
import type { ResourceDefinition } from "../../resource.ts"
import { deleteAccount, deleteToken, deleteTokens, getAccount, getAccounts, getToken, getTokens,
  postAccounts, postToken } from "./account-handlers.ts"
import { expirySchema, formScopeSchema, scopeSchema, tokenNameSchema } from "./account-schemas.ts"
import { accountForm, tokenForm } from "./account-views.ts"

const role = oneOf(...Role.literals)

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

export const accountResource: ResourceDefinition = {
  tag: "accounts",
  about: "Accounts, their roles and their tokens.",
  isGuarded: true,
  schemas: {
    Account: rootElement("account", {
      ...attributes({ href: uri, created: dateTime }),
      name: text,
      role: list(role),
      token: list(ref("Token"))
    }, ["href", "created", "name"]),
    Accounts: rootElement("accounts", { account: list(ref("Account")) }, ["account"]),
    NewAccount: rootElement("account", { name: slug, role: { anyOf: [role, list(role)] } }, [
      "name"
    ]),
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
      summary: "Creates an account, for the role admin",
      needs: "role",
      scopes: ["admin"],
      body: documentRequestBody("NewAccount", {
        form: formSchema({ name: slug, role: oneOf("", ...Role.literals) }, ["name"])
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
