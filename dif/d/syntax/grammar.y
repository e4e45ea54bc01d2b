// The grammar of D: the whole language as the Dynamic Tracing Guide gives it. Actions only build
// the tree; resolve.cc decides what a construct means and what is not supported.

%code requires {
#include "dif/d/syntax/ast.h"
namespace ringside::d { class ParseContext; }
}

%code {
#include <algorithm>
#include <type_traits>

#include "dif/d/syntax/grammar_nodes.h"
#include "dif/d/syntax/parse_context.h"
using namespace ringside::d;

// GCC does not see that the stack is only freed once it is no longer the array yyssa.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif

#define YYLLOC_DEFAULT(current, rhs, n) \
  (current) = (n) > 0 ? YYRHSLOC(rhs, 1) : YYRHSLOC(rhs, 0)
// Bison only lets its stack grow when the nodes on it may be copied as bytes.
#define RINGSIDE_D_LTYPE_IS_TRIVIAL 1
static_assert(std::is_trivially_copyable_v<ringside::d::Location>);

int ringside_d_lex(RINGSIDE_D_STYPE* value, RINGSIDE_D_LTYPE* at, void* scanner);

namespace {

void ringside_d_error(Location* at, void*, ParseContext& context, const char*);

}  // namespace

#define EXPR(...) context.expr(__VA_ARGS__)
#define REQUIRE(node) if ((node) == nullptr) YYABORT
}

%define api.pure full
%define api.prefix {ringside_d_}
%define api.value.type union
%define api.location.type {ringside::d::Location}
%define parse.error custom
%locations
%param {void* scanner}
%parse-param {ringside::d::ParseContext& context}

%token <ringside::d::Text> IDENT TYPE_NAME STRING KERNEL_SYMBOL AGGREGATION PATTERN
%token <ringside::d::Expr*> INTEGER
%token STOP RESERVED PREDICATE_BEGIN PREDICATE_END ELLIPSIS ARROW INCREMENT DECREMENT
%token SHL SHR LE GE EQ NE AND OR XOR
%token ADD_ASSIGN SUB_ASSIGN MUL_ASSIGN DIV_ASSIGN MOD_ASSIGN AND_ASSIGN OR_ASSIGN XOR_ASSIGN
%token SHL_ASSIGN SHR_ASSIGN
%token AUTO CHAR CONST DOUBLE ELSE ENUM EXTERN FLOAT IF INLINE INT LONG OFFSETOF PROBE PROVIDER
%token BREAK CONTINUE FOR WHILE
%token REGISTER RESTRICT SELF SHORT SIGNED SIZEOF STATIC STRING_TYPE STRINGOF STRUCT THIS TRANSLATOR
%token TYPEDEF UNION UNSIGNED USERLAND VOID VOLATILE XLATE

%type <ringside::d::Expr*> expression assignment operation unary cast postfix primary
%type <ringside::d::ExprList*> arguments argument_list
%type <ringside::d::TypeSpec*> specifiers specifier struct_specifier enum_specifier
%type <ringside::d::Declarator*> declarator direct_declarator abstract_declarator
%type <ringside::d::Declarator*> direct_abstract any_declarator member_declarator
%type <ringside::d::Derivation*> array_suffix function_suffix
%type <std::vector<ringside::d::Declarator*>*> declarators member_declarators
%type <ringside::d::Declaration*> declaration parameter type_name member
%type <std::vector<ringside::d::Declaration*>*> parameters members
%type <std::vector<ringside::d::EnumeratorSpec>*> enumerators
%type <ringside::d::Statement*> statement
%type <ringside::d::Expr*> expression_opt
%type <std::vector<ringside::d::Statement*>*> statements statement_list block
%type <std::vector<ringside::d::ProbePattern>*> patterns
%type <ringside::d::Expr*> predicate
%type <ringside::d::ClauseNode*> clause
%type <ringside::d::InlineNode*> inline_definition
%type <ringside::d::TranslatorNode*> translator
%type <ringside::d::ProviderNode*> provider
%type <std::vector<ringside::d::TranslatorNode::MemberValue>*> translations
%type <std::vector<ringside::d::ProviderNode::Probe>*> provider_probes
%type <ringside::d::Text> member_name
%type <bool> struct_word
%type <ringside::d::Scope> scope_word
%type <ringside::d::Text> tag

%right '?' ':'
%left OR
%left XOR
%left AND
%left '|'
%left '^'
%left '&'
%left EQ NE
%left '<' '>' LE GE
%left SHL SHR
%left '+' '-'
%left '*' '/' '%'
%precedence THEN
%precedence ELSE

%%

program:
    %empty
  | program declaration    { context.tree.externals.push_back($2); }
  | program inline_definition         { context.tree.externals.push_back($2); }
  | program translator     { context.tree.externals.push_back($2); }
  | program provider       { context.tree.externals.push_back($2); }
  | program clause         { context.tree.externals.push_back($2); }
  | program ';'
  ;

// Clauses

clause:
    patterns predicate '{' statements '}'
      { $$ = make<ClauseNode>(context, {@1, *$1, $2, *$4}); }
  | patterns predicate
      { if (!$2 && context.declares_unknown_type(yychar <= 0)) YYABORT;
        if (!$2 && context.options.is_file) {
          context.stop("D_SYNTAX", @1, "expected predicate and/or actions following probe description");
          YYABORT;
        }
        $$ = make<ClauseNode>(context, {@1, *$1, $2, {}}); }
  ;

patterns:
    PATTERN               { $$ = make<std::vector<ProbePattern>>(context); $$->push_back({@1, $1}); }
  | patterns ',' PATTERN  { $$ = append($1, ProbePattern{@3, $3}); }
  ;

predicate:
    %empty                                     { $$ = nullptr; }
  | PREDICATE_BEGIN expression PREDICATE_END   { $$ = $2; }
  ;

statements:
    statement_list             { $$ = $1; }
  | statement_list expression  { $$ = append($1, make<Statement>(context, {.expression = $2})); }
  ;

statement_list:
    %empty                    { $$ = make<std::vector<Statement*>>(context); }
  | statement_list ';'        { $$ = $1; }
  | statement_list statement  { $$ = append($1, $2); }
  ;

statement:
    expression ';'                               { $$ = make<Statement>(context, {.expression = $1}); }
  | IF '(' expression ')' block %prec THEN       { $$ = if_statement(context, $3, $5, nullptr); }
  | IF '(' expression ')' block ELSE block       { $$ = if_statement(context, $3, $5, $7); }
  | WHILE '(' expression ')' block
      { $$ = loop(context, {.at = @1, .expression = $3}, *$5); }
  | WHILE '(' expression ';' expression ')' block
      { $$ = loop(context, {.at = @1, .expression = $3, .limit = $5}, *$7); }
  | FOR '(' expression_opt ';' expression_opt ';' expression_opt ')' block
      { $$ = loop(context, {.at = @1, .expression = $5, .init = $3, .step = $7}, *$9); }
  | FOR '(' expression_opt ';' expression_opt ';' expression_opt ';' expression ')' block
      { $$ = loop(context, {.at = @1, .expression = $5, .init = $3, .step = $7, .limit = $9}, *$11); }
  | BREAK ';'     { $$ = make<Statement>(context, {.kind = Statement::Kind::Break, .at = @1}); }
  | CONTINUE ';'  { $$ = make<Statement>(context, {.kind = Statement::Kind::Continue, .at = @1}); }
  ;

expression_opt:
    %empty      { $$ = nullptr; }
  | expression
  ;

block:
    '{' statements '}'  { $$ = $2; }
  | statement           { $$ = make<std::vector<Statement*>>(context); $$->push_back($1); }
  | ';'                 { $$ = make<std::vector<Statement*>>(context); }
  ;

// Expressions

expression:
    assignment
  | expression ',' assignment  { REQUIRE($$ = EXPR(ExprKind::Comma, @2, $1, $3)); }
  ;

assignment:
    operation
  | unary '=' assignment             { REQUIRE($$ = context.assign(@2, $1, $3)); }
  | unary ADD_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Add)); }
  | unary SUB_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Sub)); }
  | unary MUL_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Mul)); }
  | unary DIV_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Div)); }
  | unary MOD_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Mod)); }
  | unary AND_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::BitAnd)); }
  | unary OR_ASSIGN assignment       { REQUIRE($$ = context.assign(@2, $1, $3, Op::BitOr)); }
  | unary XOR_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::BitXor)); }
  | unary SHL_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Shl)); }
  | unary SHR_ASSIGN assignment      { REQUIRE($$ = context.assign(@2, $1, $3, Op::Shr)); }
  ;

operation:
    cast
  | operation '*' operation   { REQUIRE($$ = context.binary(Op::Mul, @2, $1, $3)); }
  | operation '/' operation   { REQUIRE($$ = context.binary(Op::Div, @2, $1, $3)); }
  | operation '%' operation   { REQUIRE($$ = context.binary(Op::Mod, @2, $1, $3)); }
  | operation '+' operation   { REQUIRE($$ = context.binary(Op::Add, @2, $1, $3)); }
  | operation '-' operation   { REQUIRE($$ = context.binary(Op::Sub, @2, $1, $3)); }
  | operation SHL operation   { REQUIRE($$ = context.binary(Op::Shl, @2, $1, $3)); }
  | operation SHR operation   { REQUIRE($$ = context.binary(Op::Shr, @2, $1, $3)); }
  | operation '<' operation   { REQUIRE($$ = context.binary(Op::Lt, @2, $1, $3)); }
  | operation LE operation    { REQUIRE($$ = context.binary(Op::Le, @2, $1, $3)); }
  | operation '>' operation   { REQUIRE($$ = context.binary(Op::Gt, @2, $1, $3)); }
  | operation GE operation    { REQUIRE($$ = context.binary(Op::Ge, @2, $1, $3)); }
  | operation EQ operation    { REQUIRE($$ = context.binary(Op::Eq, @2, $1, $3)); }
  | operation NE operation    { REQUIRE($$ = context.binary(Op::Ne, @2, $1, $3)); }
  | operation '&' operation   { REQUIRE($$ = context.binary(Op::BitAnd, @2, $1, $3)); }
  | operation '^' operation   { REQUIRE($$ = context.binary(Op::BitXor, @2, $1, $3)); }
  | operation '|' operation   { REQUIRE($$ = context.binary(Op::BitOr, @2, $1, $3)); }
  | operation AND operation   { REQUIRE($$ = context.binary(Op::And, @2, $1, $3)); }
  | operation XOR operation   { REQUIRE($$ = context.binary(Op::Xor, @2, $1, $3)); }
  | operation OR operation    { REQUIRE($$ = context.binary(Op::Or, @2, $1, $3)); }
  | operation '?' expression ':' operation  { REQUIRE($$ = EXPR(ExprKind::Conditional, @2, $1, $3, $5)); }
  ;

unary:
    postfix
  | INCREMENT unary  { REQUIRE($$ = context.unary(Op::PreInc, @1, $2)); }
  | DECREMENT unary  { REQUIRE($$ = context.unary(Op::PreDec, @1, $2)); }
  | '+' cast         { REQUIRE($$ = context.unary(Op::Plus, @1, $2)); }
  | '-' cast         { REQUIRE($$ = context.unary(Op::Neg, @1, $2)); }
  | '~' cast         { REQUIRE($$ = context.unary(Op::BitNot, @1, $2)); }
  | '!' cast         { REQUIRE($$ = context.unary(Op::Not, @1, $2)); }
  | '*' cast         { REQUIRE($$ = context.unary(Op::Deref, @1, $2)); }
  | '&' cast         { REQUIRE($$ = context.unary(Op::AddressOf, @1, $2)); }
  | SIZEOF unary     { REQUIRE($$ = EXPR(ExprKind::SizeofExpr, @1, $2)); }
  | STRINGOF unary   { REQUIRE($$ = EXPR(ExprKind::Stringof, @1, $2)); }
  | SIZEOF '(' type_name ')'
      { REQUIRE($$ = EXPR(ExprKind::SizeofType, @1)); $$->type_name = $3; }
  ;

cast:
    unary
  | '(' type_name ')' cast  { REQUIRE($$ = EXPR(ExprKind::Cast, @1, $4)); $$->type_name = $2; }
  ;

postfix:
    primary
  | postfix '[' argument_list ']'  { REQUIRE($$ = context.index(@2, $1, $3)); }
  | postfix '(' arguments ')'      { REQUIRE($$ = context.call(@1, *$1, $3)); }
  | postfix '.' IDENT     { REQUIRE($$ = EXPR(ExprKind::Member, @2, $1)); $$->text = $3; }
  | postfix ARROW IDENT   { REQUIRE($$ = EXPR(ExprKind::Arrow, @2, $1)); $$->text = $3; }
  | postfix INCREMENT     { REQUIRE($$ = context.unary(Op::PostInc, @2, $1)); }
  | postfix DECREMENT     { REQUIRE($$ = context.unary(Op::PostDec, @2, $1)); }
  ;

primary:
    IDENT                       { REQUIRE($$ = EXPR(ExprKind::Name, @1)); $$->text = $1; }
  | scope_word ARROW IDENT      { REQUIRE($$ = EXPR(ExprKind::Scoped, @1)); $$->text = $3; $$->scope = $1; }
  | KERNEL_SYMBOL               { REQUIRE($$ = EXPR(ExprKind::KernelSymbol, @1)); $$->text = $1; }
  | AGGREGATION                 { REQUIRE($$ = EXPR(ExprKind::Aggregation, @1)); $$->text = $1; }
  | INTEGER                     { $$ = $1; }
  | STRING                      { REQUIRE($$ = EXPR(ExprKind::String, @1)); $$->text = $1; }
  | OFFSETOF '(' type_name ',' member_name ')'
      { REQUIRE($$ = EXPR(ExprKind::Offsetof, @1)); $$->type_name = $3; $$->text = $5; }
  | XLATE '<' type_name '>' '(' expression ')'
      { REQUIRE($$ = EXPR(ExprKind::Xlate, @1, $6)); $$->type_name = $3; }
  | '(' expression ')'          { $$ = $2; if (context.too_deep(++$$->depth, @1)) YYABORT; }
  ;

scope_word:
    SELF  { $$ = Scope::Thread; }
  | THIS  { $$ = Scope::Clause; }
  ;

arguments:
    %empty         { $$ = make<ExprList>(context); }
  | argument_list
  ;

argument_list:
    assignment                    { $$ = make<ExprList>(context); $$->push_back($1); }
  | argument_list ',' assignment  { $$ = append($1, $3); }
  ;

// Declarations

declaration:
    specifiers ';'
      { $$ = make<Declaration>(context, {.at = @1, .spec = $1, .declarators = {}}); }
  | specifiers declarators ';'
      { $$ = make<Declaration>(context, {.at = @1, .spec = $1, .declarators = *$2}); context.declare($$); }
  ;

inline_definition:
    INLINE specifiers declarator '=' assignment ';'
      { $$ = make<InlineNode>(context, {@1, $2, $3, $5}); }
  ;

specifiers:
    specifier
  | specifiers specifier  { REQUIRE($$ = context.merge($1, $2)); }
  ;

specifier:
    AUTO         { $$ = storage_word(context, @1, Storage::Auto); }
  | REGISTER     { $$ = storage_word(context, @1, Storage::Register); }
  | STATIC       { $$ = storage_word(context, @1, Storage::Static); }
  | EXTERN       { $$ = storage_word(context, @1, Storage::Extern); }
  | TYPEDEF      { $$ = storage_word(context, @1, Storage::Typedef); }
  | SELF         { $$ = storage_word(context, @1, Storage::Thread); }
  | THIS         { $$ = storage_word(context, @1, Storage::Clause); }
  | VOID         { $$ = base_word(context, @1, TypeSpec::Base::Void); }
  | CHAR         { $$ = base_word(context, @1, TypeSpec::Base::Char); }
  | INT          { $$ = base_word(context, @1, TypeSpec::Base::Int); }
  | FLOAT        { $$ = base_word(context, @1, TypeSpec::Base::Float); }
  | DOUBLE       { $$ = base_word(context, @1, TypeSpec::Base::Double); }
  | STRING_TYPE  { $$ = base_word(context, @1, TypeSpec::Base::String); }
  | SHORT        { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_short = true; }
  | LONG         { $$ = base_word(context, @1, TypeSpec::Base::None); $$->longs = 1; }
  | SIGNED       { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_signed = true; }
  | UNSIGNED     { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_unsigned = true; }
  | USERLAND     { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_userland = true; }
  | CONST        { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_const = true; }
  | VOLATILE     { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_volatile = true; }
  | RESTRICT     { $$ = base_word(context, @1, TypeSpec::Base::None); $$->is_restrict = true; }
  | TYPE_NAME    { $$ = base_word(context, @1, TypeSpec::Base::Named); $$->name = $1; }
  | struct_specifier
  | enum_specifier
  ;

struct_specifier:
    struct_word IDENT
      { $$ = base_word(context, @1, $1 ? TypeSpec::Base::Struct : TypeSpec::Base::Union); $$->name = $2; }
  | struct_word tag '{' { if (!context.define_tag($1 ? "struct" : "union", $2, @1)) YYABORT; } members '}'
      { $$ = base_word(context, @1, $1 ? TypeSpec::Base::Struct : TypeSpec::Base::Union);
        $$->name = $2;
        $$->is_definition = true;
        $$->members = $5;
        for (const Declaration* member : *$5) $$->depth = std::max($$->depth, member->spec->depth + 1);
        if (context.too_deep($$->depth, @1)) YYABORT; }
  ;

struct_word:
    STRUCT  { $$ = true; }
  | UNION   { $$ = false; }
  ;

tag:
    %empty  { $$ = nullptr; }
  | IDENT
  ;

members:
    %empty          { $$ = make<std::vector<Declaration*>>(context); }
  | members member  { $$ = append($1, $2); }
  ;

member:
    specifiers ';'
      { $$ = make<Declaration>(context, {.at = @1, .spec = $1, .declarators = {}}); }
  | specifiers member_declarators ';'
      { $$ = make<Declaration>(context, {.at = @1, .spec = $1, .declarators = *$2}); }
  ;

member_declarators:
    member_declarator                         { $$ = make<std::vector<Declarator*>>(context); $$->push_back($1); }
  | member_declarators ',' member_declarator  { $$ = append($1, $3); }
  ;

member_declarator:
    declarator
  | declarator ':' operation  { $$ = $1; $$->bit_width = $3; }
  | ':' operation             { $$ = make<Declarator>(context, {.at = @1}); $$->bit_width = $2; }
  ;

enum_specifier:
    ENUM IDENT  { $$ = base_word(context, @1, TypeSpec::Base::Enum); $$->name = $2; }
  | ENUM tag '{' enumerators comma_opt '}'
      { $$ = base_word(context, @1, TypeSpec::Base::Enum);
        $$->name = $2;
        $$->is_definition = true;
        $$->enumerators = $4;
        if (!context.define_tag("enum", $2, @1)) YYABORT; }
  ;

comma_opt: %empty | ',' ;

enumerators:
    IDENT                            { $$ = make<std::vector<EnumeratorSpec>>(context); $$->push_back({@1, $1, nullptr}); }
  | IDENT '=' operation              { $$ = make<std::vector<EnumeratorSpec>>(context); $$->push_back({@1, $1, $3}); }
  | enumerators ',' IDENT                { $$ = append($1, EnumeratorSpec{@3, $3, nullptr}); }
  | enumerators ',' IDENT '=' operation  { $$ = append($1, EnumeratorSpec{@3, $3, $5}); }
  ;

declarators:
    declarator                  { $$ = make<std::vector<Declarator*>>(context); $$->push_back($1); }
  | declarators ',' declarator  { $$ = append($1, $3); }
  ;

declarator:
    direct_declarator
  | '*' qualifiers declarator
      { $$ = $3; if (!context.derive($$, {.kind = Derivation::Kind::Pointer})) YYABORT; }
  ;

qualifiers: %empty | qualifiers CONST | qualifiers VOLATILE | qualifiers RESTRICT | qualifiers USERLAND ;

direct_declarator:
    IDENT                              { $$ = make<Declarator>(context, {.at = @1, .name = $1}); }
  | KERNEL_SYMBOL
      { $$ = nullptr;
        context.stop("D_DECL_SCOPE", @1, "a name of a kernel module cannot be declared");
        YYABORT; }
  | '(' declarator ')'                 { $$ = $2; }
  | direct_declarator array_suffix     { $$ = $1; if (!context.derive($$, *$2)) YYABORT; }
  | direct_declarator function_suffix  { $$ = $1; if (!context.derive($$, *$2)) YYABORT; }
  | direct_declarator '(' identifiers ')'
      { $$ = $1;
        context.stop("D_DECL_IDENT", @3, "old-style declaration or incorrect type specified");
        YYABORT; }
  ;

identifiers: IDENT | identifiers ',' IDENT ;

array_suffix:
    '[' ']'             { $$ = context.derivation(Derivation::Kind::Array); }
  | '[' operation ']'   { $$ = context.derivation(Derivation::Kind::Array); $$->count = $2; }
  | '[' parameters ']'  { $$ = context.derivation(Derivation::Kind::Keys); $$->parameters = $2; }
  | '[' varargs ']'
      { $$ = nullptr;
        context.stop("D_DECL_PROTO_VARARGS", @1, "array prototype may not use a variable-length argument list");
        YYABORT; }
  ;

varargs: ELLIPSIS | parameters ',' ELLIPSIS {} ;

function_suffix:
    '(' ')'             { $$ = context.derivation(Derivation::Kind::Function); $$->variadic = true; }
  | '(' ELLIPSIS ')'    { $$ = context.derivation(Derivation::Kind::Function); $$->variadic = true; }
  | '(' parameters ')'  { $$ = context.derivation(Derivation::Kind::Function); $$->parameters = $2; }
  | '(' parameters ',' ELLIPSIS ')'
      { $$ = context.derivation(Derivation::Kind::Function); $$->parameters = $2; $$->variadic = true; }
  ;

parameters:
    parameter                 { $$ = make<std::vector<Declaration*>>(context); $$->push_back($1); }
  | parameters ',' parameter  { $$ = append($1, $3); }
  ;

parameter:
    specifiers                 { $$ = one(context, $1, nullptr); }
  | specifiers any_declarator  { $$ = one(context, $1, $2); }
  ;

any_declarator: declarator | abstract_declarator ;

type_name:
    specifiers                      { $$ = one(context, $1, nullptr); }
  | specifiers abstract_declarator  { $$ = one(context, $1, $2); }
  ;

abstract_declarator:
    '*' qualifiers
      { $$ = make<Declarator>(context, {.at = @1}); context.derive($$, {.kind = Derivation::Kind::Pointer}); }
  | '*' qualifiers abstract_declarator
      { $$ = $3; if (!context.derive($$, {.kind = Derivation::Kind::Pointer})) YYABORT; }
  | direct_abstract
  ;

direct_abstract:
    '(' abstract_declarator ')'      { $$ = $2; }
  | array_suffix                     { $$ = make<Declarator>(context, {.at = @1}); context.derive($$, *$1); }
  | function_suffix                  { $$ = make<Declarator>(context, {.at = @1}); context.derive($$, *$1); }
  | direct_abstract array_suffix     { $$ = $1; if (!context.derive($$, *$2)) YYABORT; }
  | direct_abstract function_suffix  { $$ = $1; if (!context.derive($$, *$2)) YYABORT; }
  ;

// Translators and providers

translator:
    TRANSLATOR type_name '<' specifiers declarator '>' '{' translations '}' ';'
      { $$ = make<TranslatorNode>(context, {@1, $2, one(context, $4, $5), *$8}); }
  ;

translations:
    %empty  { $$ = make<std::vector<TranslatorNode::MemberValue>>(context); }
  | translations member_name '=' assignment ';'  { $$ = append($1, {@2, $2, $4}); }
  ;

member_name: IDENT | TYPE_NAME ;

provider:
    PROVIDER member_name '{' provider_probes '}' ';'
      { $$ = make<ProviderNode>(context, {@1, $2, *$4}); }
  ;

provider_probes:
    %empty  { $$ = make<std::vector<ProviderNode::Probe>>(context); }
  | provider_probes PROBE member_name function_suffix ';'
      { $$ = append($1, {@3, $3, *$4, {}, false}); }
  | provider_probes PROBE member_name function_suffix ':' function_suffix ';'
      { $$ = append($1, {@3, $3, *$4, *$6, true}); }
  ;

%%

namespace {

void ringside_d_error(Location* at, void*, ParseContext& context, const char*) {
  context.syntax_error(*at, false);
}

}  // namespace

// Bison calls this for a token that does not fit.
int yyreport_syntax_error(const yypcontext_t* state, void*, ParseContext& context) {
  yysymbol_kind_t expected[YYNTOKENS];
  const int count = yypcontext_expected_tokens(state, expected, YYNTOKENS);
  const bool type = std::find(expected, expected + count, YYSYMBOL_TYPE_NAME) != expected + count;
  context.syntax_error(*yypcontext_location(state), type);
  return 0;
}
