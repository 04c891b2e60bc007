-- Runs once, when PostgreSQL's folder is made: the roles of docs/postgresql.md, and rights on what fatura migrate will create.
\getenv owner_password OWNER_PASSWORD
\getenv writer_password WRITER_PASSWORD
\getenv api_password API_PASSWORD
CREATE ROLE fatura_owner  LOGIN PASSWORD :'owner_password';
CREATE ROLE fatura_writer LOGIN PASSWORD :'writer_password';
CREATE ROLE fatura_api    LOGIN PASSWORD :'api_password';
CREATE DATABASE fatura OWNER fatura_owner;
REVOKE CONNECT, TEMPORARY ON DATABASE fatura FROM PUBLIC;
GRANT CONNECT ON DATABASE fatura TO fatura_owner, fatura_writer, fatura_api;
ALTER ROLE fatura_api SET default_transaction_read_only = on;
ALTER ROLE fatura_api SET statement_timeout = '5s';
ALTER ROLE fatura_api SET jit = off;
\connect fatura
ALTER DEFAULT PRIVILEGES FOR ROLE fatura_owner GRANT USAGE ON SCHEMAS TO fatura_api, fatura_writer;
ALTER DEFAULT PRIVILEGES FOR ROLE fatura_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO fatura_writer;
